//! The results of several mechanisms in the same scenario, and their summary.

use std::sync::Arc;

use coapace_lab::experiment::{Trial, cells};
use coapace_lab::output::{Conclusion, RowFormat, write_rows};
use coapace_lab::papers::References;
use coapace_lab::results::{Better, CellResult, Metric, headline};
use coapace_run::contender::Contender;
use coapace_run::measured::{Delays, RunResult, quantile};
use serde::Serialize;
#[cfg(target_family = "wasm")]
use wasm_bindgen::prelude::wasm_bindgen;

use crate::{json, opened};

/// The metrics that the page shows in addition to the headline metric, the most important first. Metrics without a
/// value are left out.
const METRICS: [Metric; 17] = [
    Metric::TransferTime,
    Metric::MedianFct,
    Metric::FctP90,
    Metric::FctMax,
    Metric::Throughput,
    Metric::Delay,
    Metric::DelayP90,
    Metric::Pdr,
    Metric::LinkShare,
    Metric::ExchangeTime,
    Metric::GivenUp,
    Metric::Retransmissions,
    Metric::Spurious,
    Metric::Drops,
    Metric::Jain,
    Metric::BlocksAgain,
    Metric::EnergyPerByte,
];

/// The quantiles that a box plot shows: end of the lower whisker, lower end of the box, median, upper end of the box,
/// end of the upper whisker.
const BOX: [f64; 5] = [0.1, 0.25, 0.5, 0.75, 0.9];

/// The results of several mechanisms in the same scenario, and their summary. Web workers make the runs.
#[cfg_attr(target_family = "wasm", wasm_bindgen)]
pub struct Gathering {
    cells: Vec<CellResult>,
    references: References,
}

#[derive(Serialize)]
struct Sums {
    headline: &'static str,
    metrics: Vec<MetricEntry>,
    rows: Vec<Row>,
    /// The quantity that the box plots show, such as `delay of messages in seconds`; empty without box plots.
    boxes: &'static str,
    /// Sentences that say which mechanism has the best value, and whether the choice matters.
    sentences: Vec<String>,
}

#[derive(Serialize)]
struct MetricEntry {
    name: &'static str,
    title: &'static str,
    unit: &'static str,
    about: &'static str,
    axis: String,
    /// The better direction: `lower`, `higher`, or empty if neither is better.
    better: &'static str,
    digits: i32,
}

/// The summary of one mechanism's results.
#[derive(Serialize)]
struct Row {
    mechanism: String,
    runs: u64,
    trace_hash: String,
    /// For each of the metrics, the mean and the half-width of its 95 % confidence interval; null if the metric is not
    /// known.
    values: Vec<Option<(f64, Option<f64>)>>,
    /// The quantiles of the box plot; null for a quantile that falls on clients that gave up.
    quantiles: Option<[Option<f64>; 5]>,
}

#[cfg_attr(target_family = "wasm", wasm_bindgen)]
impl Gathering {
    /// Makes a gathering without results. `text` is the scenario file. `settings` is a JSON list of `[key, value]`, and
    /// `mechanisms` is a JSON list of names.
    ///
    /// # Errors
    /// Returns a line if the scenario cannot be read or a mechanism does not fit it.
    #[cfg_attr(target_family = "wasm", wasm_bindgen(constructor))]
    pub fn new(name: &str, text: &str, settings: &str, mechanisms: &str) -> Result<Gathering, String> {
        let scenario = opened::scenario(name, text, settings)?;
        let labels: Vec<String> = serde_json::from_str(mechanisms).map_err(|error| error.to_string())?;
        // The number of seeds has no effect: workers make the runs, and only the cells are taken from these trials.
        let trial =
            |label: &String| Ok(Trial::new(&Arc::clone(&scenario), Contender::fitting(label, &scenario)?, 1));
        let trials = labels.iter().map(trial).collect::<Result<Vec<_>, String>>()?;
        Ok(Self { cells: cells(&trials), references: References::default() })
    }

    /// Adds `run`, the JSON of a result, to the mechanism at index `place`.
    ///
    /// # Errors
    /// Returns a line if `run` is not the JSON of a result.
    pub fn add(&mut self, place: usize, run: &str) -> Result<(), String> {
        let run: RunResult =
            serde_json::from_str(run).map_err(|error| format!("a run cannot be read: {error}"))?;
        if let Some(cell) = self.cells.get_mut(place) {
            // Workers finish in any sequence. The command sums up runs sorted by seed.
            cell.runs.insert(cell.runs.partition_point(|own| own.seed < run.seed), run);
        }
        Ok(())
    }

    /// Returns the summary of the results so far, as JSON.
    ///
    /// # Errors
    /// An error if a value cannot be written.
    pub fn sums(&self) -> Result<String, String> {
        // The headline metric and the conclusion are about mechanisms that have results already.
        let has_runs: Vec<&CellResult> = self.cells.iter().filter(|cell| !cell.runs.is_empty()).collect();
        let headline = headline(has_runs.iter().copied());
        let summaries: Vec<_> = self.cells.iter().map(CellResult::summary).collect();
        let mut shown = vec![headline];
        shown.extend(METRICS.into_iter().filter(|metric| {
            // A metric that no mechanism has would be an empty column.
            *metric != headline && summaries.iter().any(|summary| summary.estimate(*metric).is_some())
        }));
        let row = |(cell, summary): (&CellResult, &coapace_lab::results::CellSummary)| Row {
            mechanism: cell.cell.mechanism.clone(),
            runs: summary.runs,
            trace_hash: summary.trace_hash.to_string(),
            values: (shown.iter())
                .map(|metric| summary.estimate(*metric).map(|it| (it.mean, it.half_width)))
                .collect(),
            quantiles: quantiles(cell, headline),
        };
        // Only these metrics have a distribution over clients, messages or transfers.
        let boxes = match headline {
            Metric::MedianFct => "flow completion time (FCT) of clients in seconds",
            Metric::Delay => "delay of messages in seconds",
            Metric::TransferTime => "time of transfers in seconds",
            _ => "",
        };
        json(&Sums {
            headline: headline.name(),
            metrics: shown.iter().map(|metric| MetricEntry::of(*metric)).collect(),
            rows: self.cells.iter().zip(&summaries).map(row).collect(),
            boxes,
            sentences: Conclusion::of(headline, &has_runs).map_or_else(Vec::new, |it| it.sentences()),
        })
    }

    /// Returns the results as CSV, like `coapace run --format csv`: one row for each run if `each` is true, or else one
    /// for each mechanism.
    ///
    /// # Errors
    /// An error if a row cannot be written.
    pub fn csv(&self, each: bool) -> Result<String, String> {
        let (mut out, version) = (Vec::new(), env!("CARGO_PKG_VERSION"));
        write_rows(&mut out, RowFormat::Csv, each, version, &self.cells, &self.references)
            .map_err(|error| error.to_string())?;
        String::from_utf8(out).map_err(|error| error.to_string())
    }
}

impl MetricEntry {
    fn of(metric: Metric) -> Self {
        let better = match metric.better() {
            Better::Lower => "lower",
            Better::Higher => "higher",
            Better::Neither => "",
        };
        Self {
            name: metric.name(),
            title: metric.title(),
            unit: metric.unit(),
            about: metric.about(),
            axis: metric.axis(),
            better,
            digits: metric.digits(),
        }
    }
}

/// Returns the quantiles of the headline metric over all runs of a mechanism; `None` if the metric has no distribution
/// over clients, messages or transfers.
fn quantiles(cell: &CellResult, headline: Metric) -> Option<[Option<f64>; 5]> {
    let mut times: Vec<f64> = match headline {
        Metric::MedianFct => cell.fct_s(),
        Metric::TransferTime => cell
            .runs
            .iter()
            .flat_map(|run| &run.transfers)
            .flat_map(|own| own.completed_s.iter().map(|(_, time_s)| *time_s))
            .collect(),
        Metric::Delay => {
            // Delays of messages are kept as a histogram, because there may be millions.
            let delays = Delays::of(&cell.runs);
            return (delays.count > 0).then(|| BOX.map(|p| delays.quantile_s(p)));
        }
        _ => return None,
    };
    times.sort_by(f64::total_cmp);
    // A client that gave up counts as never finished, which has no place on an axis.
    (!times.is_empty()).then(|| BOX.map(|p| quantile(&times, p).filter(|time| time.is_finite())))
}

#[cfg(test)]
mod tests {
    use coapace_scenario::Scenario;

    use super::*;
    use crate::{catalogue, describe, run};

    #[test]
    fn results_of_the_playground_equal_results_of_the_command() {
        let text = Scenario::builtin("nb-iot").unwrap().text;
        let settings = r#"[["clients","3"],["workload.exchanges","5"]]"#;
        let mut gathering = Gathering::new("nb-iot", text, settings, r#"["default","ebb"]"#).unwrap();
        for (place, mechanism) in ["default", "ebb"].into_iter().enumerate() {
            for seed in [2, 1] {
                let made = run("nb-iot", text, settings, mechanism, seed, seed == 1).unwrap();
                let made: serde_json::Value = serde_json::from_str(&made).unwrap();
                assert_eq!(made["run"]["rto"].as_array().unwrap().is_empty(), seed != 1);
                gathering.add(place, &made["run"].to_string()).unwrap();
            }
        }
        let sums: serde_json::Value = serde_json::from_str(&gathering.sums().unwrap()).unwrap();
        assert_eq!(
            (sums["headline"].as_str(), sums["rows"][1]["runs"].as_u64()),
            (Some("median_fct_s"), Some(2))
        );
        assert_eq!(sums["metrics"][0]["axis"], "median FCT in seconds");
        assert!(sums["rows"][0]["quantiles"][2].as_f64() > Some(1.0) && !sums["sentences"][0].is_null());

        let settings = opened::settings(settings).unwrap();
        let scenario = Arc::new(Scenario::load("nb-iot", &settings).unwrap());
        let trial = Trial::new(&scenario, Contender::parse("default").unwrap(), 2);
        let alone = coapace_lab::experiment::conduct(&[trial], 1, &|| ());
        assert_eq!(
            alone[0].summary().trace_hash.to_string(),
            sums["rows"][0]["trace_hash"].as_str().unwrap()
        );
        assert_eq!(gathering.csv(false).unwrap().lines().count(), 3);
        assert_eq!(gathering.csv(true).unwrap().lines().count(), 5);
    }

    #[test]
    fn errors_of_a_scenario_in_the_playground_have_line_numbers() {
        let error =
            describe("mine", "title = \"x\"\nsummary = \"y\"\nsource = \"z\"\n[clients]\ncuont = 3\n")
                .unwrap_err();
        assert!(error.starts_with("mine.toml:5: unknown key `clients.cuont`"), "{error}");
        let text = Scenario::builtin("nb-iot").unwrap().text;
        let error = crate::check("nb-iot", text, r#"[["clients","0"]]"#).unwrap_err();
        assert!(error.starts_with("--set clients=0: "), "{error}");
        assert!(run("nb-iot", text, "[]", "cocao", 1, false).unwrap_err().contains("cocoa"));
        assert!(catalogue().unwrap().contains("\"fota-lte-m\""));
    }
}
