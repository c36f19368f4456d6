//! `coapace` without a command: a comparison of all mechanisms.

use std::path::Path;

use coapace_lab::experiment::Trial;
use coapace_lab::grid::Grid;
use coapace_lab::output::wrapped;
use coapace_lab::papers::References;
use coapace_run::contender::Contender;

use super::output::{conduct, look, print_table, report, write_report};
use crate::Failure;
use crate::arguments::Arguments;
use crate::draft::Draft;
use crate::shown::remark;

/// The file name of the report.
const REPORT: &str = "coapace-report.html";

/// Repetitions: enough for steady medians over 100 clients, in a few seconds of computing.
const SEEDS: u32 = 20;

/// Two sizes of the bottleneck's buffer in bytes: one for 26 responses, and one that is never full. They are the
/// extremes of Raitahila's thesis.
const BUFFERS: &str = "2500,1410000";

/// The description that is printed before the runs.
const ABOUT: &str = "100 clients behind an NB-IoT-like link (up 60 kbit/s and 200 ms, down 30 kbit/s and 400 ms), 50 exchanges each, with a buffer \
    of 2500 bytes and with one that is never full. FCT is the time of a client from its first request to its last response.";

/// The maximum number of columns of text before a table. Longer lines are hard to read.
const WIDEST: usize = 120;

pub(crate) fn compare(arguments: &Arguments) -> Result<(), Failure> {
    let mut trials = Vec::new();
    let settings = [("clients", "100"), ("buffer", BUFFERS)];
    let settings = settings.map(|(key, value)| (key.to_owned(), value.to_owned()));
    for scenario in Grid::new("nb-iot", &settings)?.scenarios() {
        let scenario = scenario?;
        // Where the thesis measured a variant of a mechanism, that variant is run, so that the published medians
        // can be shown.
        let contenders = Contender::all_preferring(&scenario.defaults.mechanisms).map_err(Failure::Input)?;
        trials.extend(contenders.into_iter().map(|contender| Trial::new(&scenario, contender, SEEDS)));
    }
    let file = Draft::create(Path::new(REPORT))?;
    remark(arguments, &wrapped(ABOUT, look().width.min(WIDEST)));
    let conducted = conduct(arguments, &trials, References::of(&trials), None)?;
    let subtitle = "100 clients with 50 exchanges each behind a slow link with long delay: every mechanism, with a small \
                    buffer and with one that is never full.";
    let title = "CoAP congestion control on an NB-IoT-like link";
    let written =
        write_report(arguments, Some(file), None, &conducted, || report(title, subtitle, &conducted));
    // The table is printed even if the report cannot be written.
    let printed = print_table(&conducted);
    written?;
    printed?;
    remark(arguments, "next:   coapace run --help, coapace reproduce raitahila2019 --quick");
    conducted.end()
}
