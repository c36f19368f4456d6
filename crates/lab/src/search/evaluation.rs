//! The comparison of a mechanism with the best published one on each scenario of a set.

use std::sync::atomic::AtomicBool;

use coapace_control::REGISTRY;
use coapace_scenario::ScenarioError;
use serde::{Deserialize, Serialize};

use super::costs::costs;
use super::generator::{Drawn, draw, draw_shared};
use crate::contender::Contender;
use crate::experiment::{Trial, conduct_until};
use crate::rank::Section;
use crate::results::{CellResult, PopulationSummary};

/// The least and the greatest relative share beside `default` that a mechanism may have.
pub const FAIR: [f64; 2] = [0.8, 1.05];

/// The scenarios that mechanisms are compared on.
#[derive(Clone, Debug)]
pub struct Set {
    /// Those whose costs count.
    pub scenarios: Vec<Drawn>,
    /// Those that show how a mechanism shares with `default`.
    pub shared: Vec<Drawn>,
}

/// The least that a published mechanism costs on one scenario, cost by cost. Only mechanisms that dither count.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Yardstick {
    /// The least costs, in the order of [`NAMES`](super::costs::NAMES).
    pub least: [f64; 3],
    /// The mechanism that has each of them.
    pub best: [String; 3],
}

/// The comparison of a mechanism with the yardsticks of a set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// The mechanism, as it is named on the command line.
    pub mechanism: String,
    /// The costs divided by those of the yardstick, scenario by scenario.
    pub ratios: Vec<[f64; 3]>,
    /// The relative shares beside `default`.
    pub shares: Vec<f64>,
}

impl Set {
    /// Draws the set of this generator `seed`, with so many scenarios, and half as many that are shared.
    ///
    /// # Errors
    /// Returns the error of a scenario that cannot be run, which is a mistake of the generator.
    pub fn draw(seed: u64, scenarios: u32) -> Result<Self, ScenarioError> {
        Ok(Self {
            scenarios: (0..scenarios).map(|place| draw(seed, place)).collect::<Result<_, _>>()?,
            shared: (0..scenarios / 2).map(|place| draw_shared(seed, place)).collect::<Result<_, _>>()?,
        })
    }

    /// Measures the yardstick of one scenario. Returns `None` if `stop` was set meanwhile.
    pub fn yardstick(&self, place: usize, jobs: usize, stop: &AtomicBool) -> Option<Yardstick> {
        let names = REGISTRY.iter().map(|entry| entry.name);
        let labels: Vec<&str> = names.filter(|name| Section::of(name).is_yardstick()).collect();
        let scenario = &self.scenarios[place];
        let trials: Vec<Trial> =
            labels.iter().map(|label| trial(label, scenario)).collect::<Result<_, _>>().ok()?;
        let cells = measured(&trials, jobs, stop)?;
        let costs: Vec<[f64; 3]> =
            trials.iter().zip(&cells).map(|(trial, cell)| costs(&trial.contender, cell)).collect();
        let least = |cost: usize| {
            let by = |a: &usize, b: &usize| costs[*a][cost].total_cmp(&costs[*b][cost]);
            (0..costs.len()).min_by(by).unwrap_or_default()
        };
        let best = [0, 1, 2].map(least);
        Some(Yardstick {
            least: [0, 1, 2].map(|cost| costs[best[cost]][cost]),
            best: best.map(|place| labels[place].to_owned()),
        })
    }

    /// Compares `mechanism` with the first of the `yardsticks`, and measures its shares where all are compared.
    ///
    /// # Errors
    /// Returns one line if the mechanism is unknown. Returns `Ok(None)` if `stop` was set meanwhile.
    pub fn evaluate(
        &self,
        mechanism: &str,
        yardsticks: &[Yardstick],
        jobs: usize,
        stop: &AtomicBool,
    ) -> Result<Option<Evaluation>, String> {
        let is_whole = yardsticks.len() == self.scenarios.len();
        let shared = self.shared.iter().filter(|_| is_whole);
        let drawn = self.scenarios.iter().take(yardsticks.len()).chain(shared);
        let trials: Vec<Trial> = drawn.map(|drawn| trial(mechanism, drawn)).collect::<Result<_, _>>()?;
        let Some(cells) = measured(&trials, jobs, stop) else { return Ok(None) };
        let mut evaluation =
            Evaluation { mechanism: mechanism.to_owned(), ratios: Vec::new(), shares: Vec::new() };
        for (place, (trial, cell)) in trials.iter().zip(&cells).enumerate() {
            if let Some(yardstick) = yardsticks.get(place) {
                let own = costs(&trial.contender, cell);
                evaluation.ratios.push([0, 1, 2].map(|cost| own[cost] / yardstick.least[cost]));
            } else {
                let own = PopulationSummary::of(&cell.runs).into_iter().next();
                evaluation.shares.extend(own.and_then(|own| own.relative_share));
            }
        }
        Ok(Some(evaluation))
    }
}

impl Evaluation {
    /// Returns every ratio with the numbers of its scenario and its cost, the greatest first.
    pub fn greatest(&self) -> Vec<(f64, usize, usize)> {
        let mut all: Vec<_> = self.all().collect();
        all.sort_by(|a, b| b.0.total_cmp(&a.0));
        all
    }

    /// Returns the geometric mean of the ratios of one cost.
    pub fn geometric_mean(&self, cost: usize) -> f64 {
        let sum: f64 = self.ratios.iter().map(|ratios| ratios[cost].ln()).sum();
        (sum / self.ratios.len().max(1) as f64).exp()
    }

    /// Returns the least and the greatest share; `None` if shares were not measured.
    pub fn shares(&self) -> Option<[f64; 2]> {
        let least = self.shares.iter().copied().min_by(f64::total_cmp)?;
        let greatest = self.shares.iter().copied().max_by(f64::total_cmp)?;
        Some([least, greatest])
    }

    /// Returns what a search makes small: the mean fourth power of the logarithms of ratios above 1, its fourth root, and
    /// half of what shares exceed [`FAIR`] by.
    ///
    /// It is close to the worst logarithm, and unlike that it also tells two mechanisms apart that are equal in their worst
    /// cell.
    pub fn loss(&self) -> f64 {
        let powers: f64 = self.all().map(|(ratio, ..)| ratio.ln().max(0.0).powi(4)).sum();
        let unfair: f64 =
            self.shares.iter().map(|share| (share - FAIR[1]).max(0.0) + (FAIR[0] - share).max(0.0)).sum();
        (powers / (3 * self.ratios.len()).max(1) as f64).powf(0.25) + unfair / 2.0
    }

    fn all(&self) -> impl Iterator<Item = (f64, usize, usize)> {
        let of = |(place, ratios): (usize, &[f64; 3])| {
            let ratios = *ratios;
            (0..3).map(move |cost| (ratios[cost], place, cost))
        };
        self.ratios.iter().enumerate().flat_map(of)
    }
}

/// Returns the trial of a mechanism on a drawn scenario, with `default` beside it where that was drawn.
fn trial(mechanism: &str, drawn: &Drawn) -> Result<Trial, String> {
    let contender = match drawn.defaults_in_four {
        0 => Contender::parse(mechanism),
        1 => Contender::parse(&format!("{mechanism}*3+default")),
        _ => Contender::parse(&format!("{mechanism}+default")),
    }?;
    Ok(Trial::of_totals(&drawn.scenario, contender, drawn.seeds))
}

/// Runs the trials. Returns `None` if `stop` was set meanwhile.
fn measured(trials: &[Trial], jobs: usize, stop: &AtomicBool) -> Option<Vec<CellResult>> {
    let cells = conduct_until(trials, jobs, stop, &mut |_| ());
    let is_complete = trials.iter().zip(&cells).all(|(trial, cell)| cell.runs.len() == trial.seeds as usize);
    is_complete.then_some(cells)
}
