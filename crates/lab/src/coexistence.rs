//! Every pair of mechanisms at one bottleneck: how much each takes from the other.
//!
//! In each pair one half of the clients has the first mechanism, the other half the second. Each mechanism also runs once with
//! all clients. If clients transfer bodies, the rate of a client is the goodput of its transfers. `docs/coexistence.md` defines
//! the metrics.

mod rows;
mod standing;
mod table;

use std::sync::Arc;

pub(crate) use rows::{FIRST, LAST, OF_EXCHANGES, OF_TRANSFERS};
pub use standing::ShareStanding;

use crate::experiment::Trial;
use crate::lists::repeated;
use crate::results::{Cell, CellResult, CellSummary, Metric, PopulationSummary};
use coapace_run::Observe;
use coapace_run::contender::Contender;
use coapace_run::measured::{PopulationTransfers, RunResult, ratio};
use coapace_run::mix::MixPart;
use coapace_scenario::Scenario;

/// The limit of starvation, a fraction. A mechanism is starved by another one if, beside it, a client with the
/// mechanism has less than this fraction of its rate in a run in which all clients have the mechanism. The rate is the
/// throughput, or the goodput of transfers.
pub const STARVED: f64 = 0.5;

/// The default number of seeds of every pair. With three seeds, a relative share (1 is fair) is accurate to about 0.02.
pub const SEEDS: u32 = 3;

/// Returns the trials of a matrix: one for each pair of the `mechanisms`, and one for each mechanism alone.
///
/// # Errors
/// Returns one line if there are fewer than two mechanisms, a duplicate, `tcp` or a mix among them, or too few clients.
pub fn trials(scenario: &Arc<Scenario>, mechanisms: &[Contender], seeds: u32) -> Result<Vec<Trial>, String> {
    let part = |contender: &Contender| {
        let only = contender.only().cloned();
        only.ok_or_else(|| {
            format!("{:?} cannot be paired: only single mechanisms over UDP can", contender.label)
        })
    };
    let parts: Vec<MixPart> = mechanisms.iter().map(part).collect::<Result<_, _>>()?;
    if parts.len() < 2 {
        return Err("a pair needs two mechanisms".to_owned());
    }
    if let Some(label) = repeated(parts.iter().map(|part| &part.label)) {
        return Err(format!("{label:?} is named twice"));
    }
    let trial = |contender| Trial { observe: Observe::Totals, ..Trial::new(scenario, contender, seeds) };
    let mut trials = Vec::new();
    for (row, one) in parts.iter().enumerate() {
        // A mechanism alone comes before its pairs, which is the order that `Matrix::of` reads.
        trials.push(trial(mechanisms[row].clone()));
        for other in &parts[row + 1..] {
            let pair = Contender::pair(one, other);
            // Checked before any run: both halves of a pair need clients.
            pair.fits(scenario)?;
            trials.push(trial(pair));
        }
    }
    Ok(trials)
}

/// The results of all pairs of mechanisms, as a matrix with a row and a column for each mechanism.
#[derive(Clone, Debug, Default)]
pub struct Matrix {
    /// The mechanisms, in the sequence of rows and columns.
    pub mechanisms: Vec<String>,
    /// For each mechanism, the results of the runs in which all clients have it.
    pub alone: Vec<CellResult>,
    /// The number of runs behind the matrix.
    pub runs: u64,
    /// The results of every mechanism beside every other one, row by row. On the diagonal of the matrix, all clients
    /// have the same mechanism.
    encounters: Vec<Encounter>,
}

/// The results of one mechanism that shares the network with another one. A run of a pair gives two encounters, one for
/// each mechanism.
#[derive(Clone, Debug, Default)]
pub struct Encounter {
    /// The results of the clients with this mechanism.
    pub own: PopulationSummary,
    /// The mechanism of the other clients; the same mechanism if all clients have it.
    pub rival: String,
    /// The rate of a client with this mechanism, divided by the rate of a client in runs in which all clients have the
    /// mechanism. The rate is the throughput, or the goodput of transfers. `None` if the divisor is 0.
    pub kept: Option<f64>,
    /// Results of all clients together.
    pub pair: CellSummary,
    /// Retransmissions of all clients (with transfers: blocks sent again), divided by all requests that they sent, from
    /// 0 to 1; `None` if they sent no request.
    pub again_share: Option<f64>,
    /// The cell of the run: the scenario, and the mix of both mechanisms.
    pub cell: Cell,
}

impl Encounter {
    /// Returns the throughput of all clients together in exchanges per second, or with transfers, the share of the link
    /// that all of them used, from 0 to 1.
    pub fn together(&self) -> f64 {
        self.pair.count(if self.own.transfers.is_some() { Metric::LinkShare } else { Metric::Throughput })
    }

    /// Returns whether [`kept`](Self::kept) is below [`STARVED`]: beside the other mechanism, the clients have less
    /// than this fraction of the rate that they have alone.
    pub fn is_starved(&self) -> bool {
        self.kept.is_some_and(|kept| kept < STARVED)
    }
}

impl Matrix {
    /// Makes the matrix from the results of [`trials`], in the same sequence.
    pub fn of(results: &[CellResult]) -> Self {
        // Trials are the pairs of the upper triangle, row by row. The diagonal has the mechanisms alone.
        let alone: Vec<CellResult> = results.iter().filter(|result| !result.is_mix()).cloned().collect();
        let size = alone.len();
        let own =
            |summary: &CellSummary, place: usize| summary.populations.get(place).cloned().unwrap_or_default();
        // Before the pairs, because what a mechanism keeps is relative to its rate alone.
        let rates: Vec<f64> = alone.iter().map(|result| own(&result.summary(), 0).rate_per_client).collect();
        let mut encounters = vec![Encounter::default(); size * size];
        let pairs = (0..size).flat_map(|row| (row..size).map(move |column| (row, column)));
        for ((row, column), result) in pairs.zip(results) {
            let pair = result.summary();
            let sum = |of: fn(&RunResult) -> u64| result.runs.iter().map(of).sum::<u64>() as f64;
            // Of all clients: `again_share` is about both mechanisms of the pair.
            let (again, sent) = match own(&pair, 0).transfers {
                None => (sum(|run| run.retransmissions), sum(|run| run.requests_sent)),
                Some(_) => (sum(blocks_again), sum(blocks_sent)),
            };
            // One run of a pair gives two encounters, one from the point of view of each mechanism.
            for (place, (row, column)) in [(row, column), (column, row)].into_iter().enumerate() {
                // A mechanism alone is a single population.
                if place == 1 && row == column {
                    continue;
                }
                let own = own(&pair, place);
                encounters[row * size + column] = Encounter {
                    rival: alone[column].cell.mechanism.clone(),
                    kept: ratio(own.rate_per_client, rates[row]),
                    own,
                    pair: pair.clone(),
                    again_share: ratio(again, sent),
                    cell: result.cell.clone(),
                };
            }
        }
        let mechanisms = alone.iter().map(|result| result.cell.mechanism.clone()).collect();
        let runs = results.iter().map(|result| result.runs.len() as u64).sum();
        Self { mechanisms, alone, runs, encounters }
    }

    /// Returns whether the mechanisms are compared by their transfers, and not by exchanges.
    pub fn is_of_transfers(&self) -> bool {
        self.encounters.iter().any(|encounter| encounter.own.transfers.is_some())
    }

    /// Returns the results of mechanism number `row` beside mechanism number `column`, both counted from 0.
    ///
    /// # Panics
    /// Panics if the row or the column does not exist.
    pub fn encounter(&self, row: usize, column: usize) -> &Encounter {
        &self.encounters[row * self.mechanisms.len() + column]
    }

    /// Returns every encounter with its row and column.
    pub fn encounters(&self) -> impl Iterator<Item = (usize, usize, &Encounter)> {
        let size = self.mechanisms.len();
        let all = self.encounters.iter().enumerate();
        all.map(move |(place, encounter)| (place / size, place % size, encounter))
    }
}

/// Returns the number of blocks that clients over UDP sent or requested again.
fn blocks_again(run: &RunResult) -> u64 {
    of_transfers(run, |own| own.blocks_again)
}

/// Returns the number of requests of clients over UDP that carry or request a block.
fn blocks_sent(run: &RunResult) -> u64 {
    of_transfers(run, |own| own.blocks_sent)
}

fn of_transfers(run: &RunResult, of: fn(&PopulationTransfers) -> u64) -> u64 {
    run.populations.iter().filter_map(|any| any.transfers.as_ref()).map(of).sum()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::experiment::conduct;
    use crate::output::RowFormat;

    /// Makes a short matrix of these mechanisms on `jobs` threads.
    pub(crate) fn matrix(names: &[&str], jobs: usize) -> Matrix {
        let contenders: Vec<_> = names.iter().map(|name| Contender::parse(name).unwrap()).collect();
        let trials = trials(&scenario("60"), &contenders, 2).unwrap();
        Matrix::of(&conduct(&trials, jobs, &|| {}))
    }

    fn scenario(clients: &str) -> Arc<Scenario> {
        let set = [
            ("clients", clients),
            ("buffer", "2500"),
            ("workload.duration", "60 s"),
            ("workload.warm_up", "10 s"),
        ];
        let set = set.map(|(key, value)| (key.to_owned(), value.to_owned()));
        Arc::new(Scenario::load("coexistence", &set).unwrap())
    }

    #[test]
    fn the_shares_of_a_pair_add_up_to_one_and_each_mechanism_also_runs_alone() {
        let matrix = matrix(&["default", "cocoa", "fasor"], 1);
        assert_eq!(matrix.mechanisms, ["default", "cocoa", "fasor"]);
        for (row, column, encounter) in matrix.encounters() {
            assert_eq!(encounter.pair.runs, 2);
            let other = matrix.encounter(column, row);
            assert_eq!(encounter.own.mechanism, matrix.mechanisms[row]);
            if row == column {
                assert_eq!((encounter.own.relative_share, encounter.kept), (Some(1.0), Some(1.0)));
                assert_eq!(encounter.own.clients, 60);
                continue;
            }
            assert_eq!(encounter.own.clients, 30);
            let shares = encounter.own.share.unwrap() + other.own.share.unwrap();
            assert!((shares - 1.0).abs() < 1e-12, "{shares}");
            let relative = encounter.own.relative_share.unwrap() + other.own.relative_share.unwrap();
            assert!((relative - 2.0).abs() < 1e-12, "{relative}");
            assert_eq!(encounter.pair.trace_hash, other.pair.trace_hash, "it is the same run");
            let together = 30.0 * (encounter.own.rate_per_client + other.own.rate_per_client);
            assert!((together - encounter.together()).abs() < 1e-9);
            let alone = matrix.encounter(row, row).own.rate_per_client;
            let kept = encounter.own.rate_per_client / alone;
            assert!((encounter.kept.unwrap() - kept).abs() < 1e-12);
        }
        // Equal shares would let the sums below hold trivially.
        assert!((matrix.encounter(0, 1).own.relative_share.unwrap() - 1.0).abs() > 0.001);
    }

    /// Makes a matrix of two endless transfers that share an LTE-M link.
    pub(crate) fn of_transfers(names: &[&str]) -> Matrix {
        let set = [
            ("clients", "2"),
            ("transfers", "2"),
            ("bytes", "16_000_000"),
            ("workload.transfers.firmware.count", "none"),
            ("workload.duration", "60 s"),
            ("workload.warm_up", "10 s"),
        ];
        let set = set.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let scenario = Arc::new(Scenario::load("fota-lte-m", &set).unwrap());
        let contenders: Vec<_> = names.iter().map(|name| Contender::parse(name).unwrap()).collect();
        Matrix::of(&conduct(&trials(&scenario, &contenders, 2).unwrap(), 2, &|| {}))
    }

    #[test]
    fn pairs_of_bulk_mechanisms_are_compared_and_called_starved_by_goodput() {
        let matrix = of_transfers(&["tide", "newreno", "rfc9177"]);
        assert!(matrix.is_of_transfers());
        for (row, column, encounter) in matrix.encounters() {
            let (own, other) = (&encounter.own, &matrix.encounter(column, row).own);
            // Alone, both clients have the mechanism.
            assert_eq!(own.clients, if row == column { 2 } else { 1 });
            assert!(own.completed < 1e-9, "an endless transfer has goodput all the same");
            let alone = matrix.encounter(row, row).own.rate_per_client;
            assert!((encounter.kept.unwrap() - own.rate_per_client / alone).abs() < 1e-12);
            assert_eq!(encounter.is_starved(), encounter.kept.unwrap() < STARVED);
            if row != column {
                let relative = own.relative_share.unwrap() + other.relative_share.unwrap();
                assert!((relative - 2.0).abs() < 1e-12, "{relative}");
                // Of transfers a pair counts the share of the link, which both fill together.
                let together = (own.rate_per_client + other.rate_per_client) / 300e3;
                assert!((encounter.together() - together).abs() < 1e-6, "the link has 300 kbit/s");
            }
        }
        assert!(matrix.encounter(2, 1).is_starved(), "rfc9177 beside newreno");
        assert!(
            matrix.sentences()[2]
                .starts_with("Starves: newreno starves rfc9177. Worst off is rfc9177 beside newreno")
        );
        let text = matrix.table();
        for part in [
            " of a client where all have the\n",
            "Goodput of the row's half",
            " % of the link, the least of all pairs; ",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let kept = matrix.encounter(2, 1).kept.unwrap() * 100.0;
        let row =
            text.lines().find(|line| line.trim_start().starts_with("rfc9177") && line.contains(" newreno"));
        assert!(row.unwrap().contains(&format!(" {kept:.0} % ")), "{text}");
        assert!(!text.contains("exchange"), "{text}");

        let rows = matrix.rows("c0ffee");
        let column = |name: &str| rows.0.iter().find(|(own, _)| own == name).map(|(_, values)| values.len());
        assert_eq!(column("goodput_per_client_bps"), Some(9));
        assert_eq!((column("transfer_time_s"), column("pair_link_share")), (Some(9), Some(9)));
        assert_eq!((column("throughput_per_client"), column("pair_jain")), (None, None));
    }

    #[test]
    fn the_matrix_of_pairs_does_not_depend_on_the_number_of_threads() {
        let csv = |jobs| {
            let mut out = Vec::new();
            matrix(&["default", "cocoa"], jobs).rows("c0ffee").write(&mut out, RowFormat::Csv).unwrap();
            out
        };
        assert_eq!(csv(1), csv(2));
    }

    #[test]
    fn mixes_and_tcp_are_refused_as_members_of_a_pair() {
        let refused = |names: &[&str], clients| {
            let contenders: Vec<_> = names.iter().map(|name| Contender::parse(name).unwrap()).collect();
            trials(&scenario(clients), &contenders, 1).unwrap_err()
        };
        assert_eq!(refused(&["cocoa"], "60"), "a pair needs two mechanisms");
        assert_eq!(refused(&["cocoa", "default", "cocoa"], "60"), "\"cocoa\" is named twice");
        assert!(refused(&["cocoa", "tcp"], "60").contains("\"tcp\" cannot be paired"));
        assert!(refused(&["cocoa+default", "fasor"], "60").contains("\"cocoa+default\" cannot be paired"));
        assert!(refused(&["cocoa", "default"], "1").contains("\"cocoa+default\" needs at least 2 clients"));
    }
}
