//! How a mechanism compares with the best published one on each scenario of a set.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use coapace_control::{Origin, REGISTRY};

use super::costs::{Costs, relative_share};
use super::generator::Drawn;
use crate::contender::Contender;
use crate::experiment::{Trial, conduct_until};
use crate::run::Observe;

/// The least that any published mechanism costs on one scenario, cost by cost.
#[derive(Clone, Debug, PartialEq)]
pub struct Yardstick {
    /// The least costs.
    pub costs: Costs,
    /// The mechanism that has each of them.
    pub best: [String; 3],
}

/// The comparison of one mechanism with the yardstick of one scenario.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Score {
    /// Each cost divided by that of the yardstick.
    pub ratios: [f64; 3],
    /// The relative share beside `default`; `None` without `default`.
    pub share: Option<f64>,
}

impl Score {
    /// Returns the natural logarithm of the greatest ratio.
    pub fn worst(&self) -> f64 {
        self.ratios.iter().fold(f64::NEG_INFINITY, |worst, ratio| worst.max(ratio.ln()))
    }
}

/// Returns the published mechanisms that dither: those that a mechanism is measured against.
pub fn published() -> Vec<String> {
    let is_measure = |entry: &&coapace_control::Entry| entry.origin == Origin::Published && entry.mechanism.dithers();
    REGISTRY.iter().filter(is_measure).map(|entry| entry.name.to_owned()).collect()
}

/// Returns the contender that `label` is on a drawn scenario, with `default` beside it where it was drawn.
///
/// # Errors
/// Returns one line if the label names no mechanism.
pub fn contender(label: &str, drawn: &Drawn) -> Result<Contender, String> {
    match drawn.defaults_in_four {
        0 => Contender::parse(label),
        1 => Contender::parse(&format!("{label}*3+default")),
        _ => Contender::parse(&format!("{label}+default")),
    }
}

/// Measures `labels` on every scenario; the result has a row for each scenario and a column for each label.
///
/// # Errors
/// Returns one line if a label names no mechanism, or if `stop` was set.
pub fn measure(
    set: &[Drawn],
    labels: &[String],
    jobs: usize,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(usize),
) -> Result<Vec<Vec<(Costs, Option<f64>)>>, String> {
    let mut trials = Vec::new();
    for drawn in set {
        for label in labels {
            trials.push(Trial {
                scenario: Arc::clone(&drawn.scenario),
                contender: contender(label, drawn)?,
                seeds: drawn.seeds,
                first_seed: 1,
                published: None,
                observe: Observe::Totals,
            });
        }
    }
    let mut ran = 0;
    let results = conduct_until(&trials, jobs, stop, &mut |_| {
        ran += 1;
        progress(ran);
    });
    if trials.iter().zip(&results).any(|(trial, result)| result.runs.len() < trial.seeds as usize) {
        return Err("interrupted".to_owned());
    }
    let costs: Vec<_> = trials
        .iter()
        .zip(&results)
        .map(|(trial, result)| (Costs::of(&trial.contender, result), relative_share(result)))
        .collect();
    Ok(costs.chunks(labels.len()).map(<[_]>::to_vec).collect())
}

/// Returns the yardstick of each row of [`measure`] with these labels.
pub fn yardsticks(rows: &[Vec<(Costs, Option<f64>)>], labels: &[String]) -> Vec<Yardstick> {
    let least = |row: &Vec<(Costs, Option<f64>)>, cost: usize| {
        let of = |place: &usize| row[*place].0.array()[cost];
        (0..row.len()).min_by(|a, b| of(a).total_cmp(&of(b))).unwrap_or(0)
    };
    let yardstick = |row: &Vec<(Costs, Option<f64>)>| {
        let [mean, p90, transmissions] = [0, 1, 2].map(|cost| least(row, cost));
        Yardstick {
            costs: Costs {
                mean_fct_s: row[mean].0.mean_fct_s,
                p90_fct_s: row[p90].0.p90_fct_s,
                transmissions: row[transmissions].0.transmissions,
            },
            best: [mean, p90, transmissions].map(|place| labels[place].clone()),
        }
    };
    rows.iter().map(yardstick).collect()
}

/// Compares measured costs with the yardstick of their scenario.
pub fn score(costs: &Costs, share: Option<f64>, yardstick: &Yardstick) -> Score {
    let (own, best) = (costs.array(), yardstick.costs.array());
    Score { ratios: [0, 1, 2].map(|cost| own[cost] / best[cost]), share }
}
