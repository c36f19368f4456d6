//! The agreement of measured with published results, in words.

use coapace_scenario::naming::TCP;

use super::Paper;
use crate::results::{CellResult, Compared, Nearness, judged, nearness, tally, verdicts};

impl Paper {
    /// Returns a few lines on how far the measured figures and orders agree with the published ones.
    pub fn summary(&self, results: &[CellResult]) -> String {
        let compared: Vec<_> = results.iter().filter(|result| !result.plain().is_empty()).collect();
        let (judged, verdicts) = (judged(results), verdicts(results));
        let mut lines = Vec::new();
        if !compared.is_empty() {
            lines.push(format!("{} published figures: {}", self.key, near(&compared)));
        }
        lines.extend(
            nearness(&judged).iter().map(|table: &Nearness| format!("{} {}", self.key, table.words())),
        );
        if !verdicts.is_empty() {
            lines.push(format!("{} published orders: {}", self.key, tally(&verdicts)));
        }
        lines.join("\n")
    }
}

/// Returns how many of these results are near the published ones. UDP and TCP are counted apart if there are both.
pub(super) fn near(results: &[&CellResult]) -> String {
    let (tcp, udp): (Vec<_>, Vec<_>) = results.iter().partition(|result| result.cell.label() == TCP);
    let all = share(results, Compared::MET);
    if tcp.is_empty() {
        return all;
    }
    format!("{all}; UDP: {}; TCP: {}", share(&udp, 0.12), share(&tcp, 0.15))
}

/// Returns how many of these results are within `bound` of the published ones, such as `3 of 4 within 5 %`.
fn share(results: &[&CellResult], bound: f64) -> String {
    let error = |result: &&&CellResult| result.relative_error().is_some_and(|error| error.abs() <= bound);
    let within = results.iter().filter(error).count();
    format!("{within} of {} within {:.0} %", results.len(), bound * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::papers::tests::paper;

    #[test]
    fn the_summary_has_a_line_for_each_table() {
        let tables = "[tables.3]\ntitle = 'Table 3'\nfactor = 1.5\nwhy = 'other radios'\n";
        let paper = paper(tables, "table,loss,mechanism,throughput\n3,4 %,ours,650\n");
        let results = crate::experiment::conduct(&paper.trials(true, &[]).unwrap(), 1, &|| ());
        let factor = judged(&results)[0].figure.factor().unwrap();
        assert!(factor < 1.5, "{factor}");
        let summary = paper.summary(&results);
        assert!(summary.starts_with("k Table 3: 1 of 1 within a factor of 1.5, largest 1.0"), "{summary}");
        assert!(summary.ends_with("; other radios"), "{summary}");
    }
}
