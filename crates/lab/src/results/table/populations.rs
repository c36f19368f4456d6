//! The mechanisms of each mix, side by side.

use super::style::aligned;
use crate::results::CellResult;
use crate::results::number::{count, significant_or_dash};

/// Returns a table of the mechanisms of all mixes among `results`; empty if there is no mix.
pub(super) fn table(results: &[CellResult]) -> String {
    const HEADER: [&str; 8] =
        ["mix", "of which", "clients", "share", "of a fair one", "retrans.", "exchange time", "Jain"];
    let mut rows = Vec::new();
    for result in results.iter().filter(|result| result.is_mix()) {
        for own in result.summary().populations {
            rows.push(vec![
                result.cell.label().to_owned(),
                own.mechanism,
                own.clients.to_string(),
                own.share.map_or_else(|| "–".into(), |share| format!("{:.1}\u{a0}%", share * 100.0)),
                own.relative_share.map_or_else(|| "–".into(), |share| format!("{share:.2}")),
                count(own.retransmissions_per_client),
                significant_or_dash(own.exchange_time_s, 3),
                own.jain.map_or_else(|| "–".into(), |jain| format!("{jain:.3}")),
            ]);
        }
    }
    if rows.is_empty() {
        return String::new();
    }
    format!(
        "\n{}\n\nShare of the throughput; 1 of a fair one is that of the clients; exchange time in seconds, mean; \
         Jain among its own.\n",
        aligned(HEADER, rows, |place| place >= 2)
    )
}
