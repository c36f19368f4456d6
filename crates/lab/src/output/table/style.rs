//! The appearance of tables in the terminal.

use comfy_table::{Cell, CellAlignment, ContentArrangement, LineStyle, Table, TableStyle};

use crate::number::{half_interval, significant};
use crate::results::Metric;
use coapace_run::measured::Estimate;

/// The width and colours of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// The number of columns of the terminal.
    pub width: usize,
    /// Whether mechanisms are coloured.
    pub colours: bool,
}

impl Look {
    /// The appearance in a file or a pipe: every column, and no colour.
    pub const PLAIN: Self = Self { width: usize::MAX, colours: false };

    /// Returns a text in colour number `n`. Consecutive numbers have different colours.
    pub(super) fn coloured(self, number: usize, text: &str) -> String {
        // Green, yellow, magenta, cyan, blue and red: the colours of every terminal.
        const COLOURS: [u8; 6] = [32, 33, 35, 36, 34, 31];
        if !self.colours || text.is_empty() {
            return text.to_owned();
        }
        // With more ranks than colours, these begin again.
        format!("\u{1b}[{}m{text}\u{1b}[0m", COLOURS[number % COLOURS.len()])
    }
}

/// Returns a text in lines of at most this many columns, broken at blanks. A longer word gets its own line. Existing line
/// breaks stay.
pub fn wrapped(text: &str, width: usize) -> String {
    let line = |line: &str| {
        let mut lines: Vec<String> = Vec::new();
        // A per cent sign stays on the line of its number.
        for word in line.replace(" %", "\u{a0}%").split(' ') {
            match lines.last_mut() {
                Some(last) if last.chars().count().saturating_add(1 + word.chars().count()) <= width => {
                    last.push(' ');
                    last.push_str(word);
                }
                _ => lines.push(word.to_owned()),
            }
        }
        lines.join("\n")
    };
    text.split('\n').map(line).collect::<Vec<_>>().join("\n")
}

/// Returns a bar of at most this many characters, for a share from 0 to 1.
pub(super) fn bar(share: f64, width: usize) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    #[allow(clippy::cast_sign_loss)] // clamped
    let eighths = (share.clamp(0.0, 1.0) * 8.0 * width as f64).round() as usize;
    // A value above 0 is visible.
    let eighths = if share > 0.0 { eighths.max(1) } else { 0 };
    "█".repeat(eighths / 8) + EIGHTHS[eighths % 8]
}

/// Returns a table as text. Its only rule is the line under the header, and no cell is broken. Columns for which `is_number` is
/// true are aligned to the right.
pub(crate) fn aligned<H: Into<Cell>>(
    header: impl IntoIterator<Item = H>,
    rows: Vec<Vec<String>>,
    is_number: impl Fn(usize) -> bool,
) -> String {
    const STYLE: TableStyle = TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));
    let mut table = Table::new();
    table.load_style(STYLE).set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(header.into_iter().map(Into::into).collect::<Vec<Cell>>());
    table.add_rows(rows);
    for (_, column) in table.column_iter_mut().enumerate().filter(|(place, _)| is_number(*place)) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.trim_fmt()
}

/// Returns a value with its confidence interval.
pub(super) fn estimated(metric: Metric, estimate: Option<Estimate>) -> String {
    let Some(Estimate { mean, half_width }) = estimate else { return "–".into() };
    // Clients are counted over all seeds.
    if metric == Metric::ClientsGaveUp {
        return format!("{mean:.0}");
    }
    let digits = metric.digits();
    let shown = significant(mean, digits);
    match half_width.filter(|_| metric.interval_name().is_some()) {
        Some(half) => format!("{shown} ±{}", half_interval(half, mean, digits)),
        None => shown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_are_broken_at_blanks_and_never_within_a_word() {
        assert_eq!(wrapped("one two three", 7), "one two\nthree");
        assert_eq!(wrapped("within 5 % of it", 9), "within\n5\u{a0}% of it");
        assert_eq!(wrapped("a very-long-word\nb", 5), "a\nvery-long-word\nb");
        assert_eq!(wrapped("one two", usize::MAX), "one two");
    }

    #[test]
    fn a_bar_is_drawn_in_eighths_and_is_visible_for_any_value_above_zero() {
        assert_eq!(
            [0.0, 1e-9, 0.5, 0.5625, 1.0, 7.0].map(|share| bar(share, 2)),
            ["", "▏", "█", "█▏", "██", "██"]
        );
    }

    #[test]
    fn no_colours_are_printed_if_they_are_switched_off() {
        assert_eq!(Look::PLAIN.coloured(0, "a"), "a");
        let look = Look { colours: true, ..Look::PLAIN };
        assert_eq!(
            (look.coloured(0, "a"), look.coloured(1, "")),
            ("\u{1b}[32ma\u{1b}[0m".to_owned(), String::new())
        );
    }
}
