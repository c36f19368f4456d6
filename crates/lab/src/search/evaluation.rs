//! The comparison of a mechanism with the best published one on each scenario of a set.

use std::fmt::Write;
use std::ops::ControlFlow;
use std::panic::resume_unwind;
use std::sync::atomic::AtomicBool;

use coapace_control::REGISTRY;
use coapace_scenario::ScenarioError;
use serde::{Deserialize, Serialize};

use super::costs::costs;
use super::generator::Drawn;
use super::networks::Networks;
use crate::experiment::Trial;
use crate::rank::Section;
use crate::results::PopulationSummary;
use coapace_run::contender::Contender;
use coapace_run::run;
use coapace_run::workers::make_all;

/// The smallest and the largest relative share that counts as fair, for a mechanism beside `default`.
pub const FAIR: [f64; 2] = [0.8, 1.05];

/// The number of ratios that are listed for each mechanism, the greatest first.
const LISTED: usize = 5;

/// The scenarios on which mechanisms are compared.
#[derive(Clone, Debug)]
pub struct Set {
    /// The kind of the networks in the set.
    pub networks: Networks,
    /// The scenarios whose costs count.
    pub scenarios: Vec<Drawn>,
    /// The scenarios that measure how a mechanism shares with `default`.
    pub shared: Vec<Drawn>,
}

/// A piece of work for one thread: the runs of a mechanism on one scenario of a set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchPiece {
    /// The mechanism, as named on the command line.
    pub mechanism: String,
    /// The number of the scenario. Scenarios for costs come first, scenarios for shares follow.
    pub place: usize,
}

/// The results of a piece.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// The costs, in the sequence of the [costs](Networks::costs) of the set's kind of networks.
    pub costs: [f64; 3],
    /// The relative share beside `default`, if the scenario has clients with `default`.
    pub share: Option<f64>,
}

/// The baseline of a scenario: for each cost, the lowest value of any published mechanism with random timeouts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CostYardstick {
    /// The lowest costs, in the sequence of [`Networks::costs`].
    pub least: [f64; 3],
    /// The mechanism that has each of the lowest costs.
    pub best: [String; 3],
}

/// The comparison of a mechanism with the baselines of a set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evaluation {
    /// The mechanism, as named on the command line.
    pub mechanism: String,
    /// The costs divided by the baseline's costs, scenario by scenario.
    pub ratios: Vec<[f64; 3]>,
    /// The relative shares beside `default`.
    pub shares: Vec<f64>,
}

impl Set {
    /// Draws `scenarios` networks from the generator's `seed`, and `scenarios / 2` shared bottlenecks if `networks` has them.
    ///
    /// # Errors
    /// Returns the error of an invalid scenario, which is a bug of the generator.
    pub fn draw(networks: Networks, seed: u64, scenarios: u32) -> Result<Self, ScenarioError> {
        let all = scenarios + networks.shared(scenarios);
        let mut drawn: Vec<_> =
            (0..all).map(|place| networks.draw(seed, scenarios, place)).collect::<Result<_, _>>()?;
        // `Networks::draw` numbers the shared scenarios after the others.
        let shared = drawn.split_off(scenarios as usize);
        Ok(Self { networks, scenarios: drawn, shared })
    }

    /// Returns the scenario with this [number](SearchPiece::place).
    pub fn drawn(&self, place: usize) -> Option<&Drawn> {
        self.scenarios.iter().chain(&self.shared).nth(place)
    }

    /// Returns the pieces of an evaluation on the first `scenarios` scenarios for costs. If these are all of them, the
    /// pieces for shares follow.
    pub fn pieces(&self, mechanism: &str, scenarios: usize) -> Vec<SearchPiece> {
        let all = self.scenarios.len();
        let last = if scenarios == all { all + self.shared.len() } else { scenarios };
        (0..last).map(|place| SearchPiece { mechanism: mechanism.to_owned(), place }).collect()
    }

    /// Measures a piece in this thread.
    ///
    /// # Errors
    /// Returns one line if the mechanism is unknown or the set has no such scenario.
    pub fn measure(&self, piece: &SearchPiece) -> Result<Measured, String> {
        let drawn =
            self.drawn(piece.place).ok_or_else(|| format!("the set has no scenario {}", piece.place))?;
        piece.measure(drawn)
    }

    /// Measures `mechanism` on the first scenarios of the set, as many as there are `yardsticks`, and compares it with
    /// these. If all scenarios for costs have a yardstick, also measures the mechanism's shares beside `default`. Runs
    /// on `jobs` threads (0: one for each core).
    ///
    /// # Errors
    /// Returns one line if the mechanism is unknown.
    pub fn evaluate(
        &self,
        mechanism: &str,
        yardsticks: &[CostYardstick],
        jobs: usize,
    ) -> Result<Evaluation, String> {
        let pieces = self.pieces(mechanism, yardsticks.len());
        let mut measured = vec![None; pieces.len()];
        // Copied, because the threads of `make_all` can borrow nothing from here.
        let (set, count) = (self.clone(), pieces.len());
        let make = move |place: usize| (place, set.measure(&pieces[place]));
        let ended = make_all(count, jobs, &AtomicBool::new(false), make, &mut |(place, found)| {
            measured[place] = Some(found);
            ControlFlow::Continue(())
        });
        // Without this, a piece that panicked would only be missing from the results.
        ended.unwrap_or_else(|panic| resume_unwind(panic));
        let measured: Vec<_> = measured.into_iter().flatten().collect::<Result<_, _>>()?;
        Ok(Evaluation::of(mechanism, yardsticks, &measured))
    }
}

impl SearchPiece {
    /// Measures the piece on its scenario, in this thread.
    ///
    /// # Errors
    /// Returns one line if the mechanism is unknown.
    pub fn measure(&self, drawn: &Drawn) -> Result<Measured, String> {
        let trial = trial(&self.mechanism, drawn)?;
        let seeds = (trial.first_seed..).take(trial.seeds as usize);
        let run = |seed| run(&trial.scenario, &trial.contender, seed, trial.observe);
        let runs: Vec<_> = seeds.map(run).collect();
        // The first population has the mechanism. `default` is named after it.
        let own = PopulationSummary::of(&runs).into_iter().next();
        Ok(Measured { costs: costs(&trial, &runs), share: own.and_then(|own| own.relative_share) })
    }
}

impl CostYardstick {
    /// Returns the published mechanisms with random timeouts.
    pub fn mechanisms() -> Vec<&'static str> {
        REGISTRY.iter().map(|entry| entry.name).filter(|name| Section::of(name).is_yardstick()).collect()
    }

    /// Returns the pieces needed for the baseline of this scenario.
    pub fn pieces(place: usize) -> Vec<SearchPiece> {
        Self::mechanisms().into_iter().map(|name| SearchPiece { mechanism: name.to_owned(), place }).collect()
    }

    /// Returns the baseline of a scenario from the results of its [pieces](Self::pieces).
    pub fn of(measured: &[Measured]) -> Self {
        let least = |cost: usize| {
            let by = |a: &usize, b: &usize| measured[*a].costs[cost].total_cmp(&measured[*b].costs[cost]);
            (0..measured.len()).min_by(by).unwrap_or_default()
        };
        // Results have the sequence of `mechanisms`, so a place names the mechanism.
        let (best, labels) = ([0, 1, 2].map(least), Self::mechanisms());
        Self {
            least: [0, 1, 2].map(|cost| measured[best[cost]].costs[cost]),
            best: best.map(|place| labels[place].to_owned()),
        }
    }
}

impl Evaluation {
    /// Compares a mechanism with the `yardsticks` of the first scenarios, from the results of its [pieces](Set::pieces).
    pub fn of(mechanism: &str, yardsticks: &[CostYardstick], measured: &[Measured]) -> Self {
        let ratios = measured
            .iter()
            .zip(yardsticks)
            .map(|(measured, yardstick)| [0, 1, 2].map(|cost| measured.costs[cost] / yardstick.least[cost]));
        // Pieces on shared scenarios follow those whose costs count, and have no yardstick.
        let shares = measured.iter().skip(yardsticks.len()).filter_map(|measured| measured.share);
        Self { mechanism: mechanism.to_owned(), ratios: ratios.collect(), shares: shares.collect() }
    }

    /// Returns every ratio with the numbers of its scenario and its cost, the greatest first.
    pub fn greatest(&self) -> Vec<(f64, usize, usize)> {
        let mut all: Vec<_> = self.all().collect();
        all.sort_by(|a, b| b.0.total_cmp(&a.0));
        all
    }

    /// Returns the geometric mean of the ratios for one cost.
    pub fn geometric_mean(&self, cost: usize) -> f64 {
        let sum: f64 = self.ratios.iter().map(|ratios| ratios[cost].ln()).sum();
        (sum / self.ratios.len().max(1) as f64).exp()
    }

    /// Returns the smallest and the largest share beside clients with `default`; `None` if shares were not measured.
    pub fn shares(&self) -> Option<[f64; 2]> {
        let least = self.shares.iter().copied().min_by(f64::total_cmp)?;
        let greatest = self.shares.iter().copied().max_by(f64::total_cmp)?;
        Some([least, greatest])
    }

    /// Returns the number of shares outside of [`FAIR`].
    pub fn unfair(&self) -> usize {
        self.shares.iter().filter(|share| !(FAIR[0]..=FAIR[1]).contains(*share)).count()
    }

    /// Returns the loss, which a search minimises: the sum of two terms. The first is the fourth root of the mean
    /// fourth power of the logarithms of the ratios, where ratios below 1 count as 1. The second is half the sum of the
    /// distances of shares from [`FAIR`].
    ///
    /// The first term is close to the worst logarithm, but also differs between two mechanisms that are equal in their
    /// worst cell.
    pub fn loss(&self) -> f64 {
        // Ratios below 1 earn nothing, or one good network would pay for a bad one.
        let powers: f64 = self.all().map(|(ratio, ..)| ratio.ln().max(0.0).powi(4)).sum();
        let unfair: f64 =
            self.shares.iter().map(|share| (share - FAIR[1]).max(0.0) + (FAIR[0] - share).max(0.0)).sum();
        (powers / (3 * self.ratios.len()).max(1) as f64).powf(0.25) + unfair / 2.0
    }

    /// Returns the evaluation as text. If `each` is true, the text has a line for each scenario.
    pub fn text(&self, set: &Set, each: bool) -> String {
        let mut text = format!("{}\n", self.mechanism);
        // Writing to a string does not fail.
        let _ = self.write(&mut text, set, each);
        text
    }

    fn write(&self, out: &mut String, set: &Set, each: bool) -> std::fmt::Result {
        let names = set.networks.costs().map(|cost| cost.name);
        write!(out, "  geometric mean")?;
        for (cost, name) in names.iter().enumerate() {
            write!(out, "   {name} {:.3}", self.geometric_mean(cost))?;
        }
        writeln!(out)?;
        // The worst scenarios are listed, because they decide the loss and show where a mechanism fails.
        for (ratio, place, cost) in self.greatest().into_iter().take(LISTED) {
            let description = &set.scenarios[place].description;
            writeln!(out, "  {ratio:.2}  {} of scenario {place}: {description}", names[cost])?;
        }
        if let Some([least, greatest]) = self.shares() {
            writeln!(
                out,
                "  share beside default {least:.2} to {greatest:.2}, {} of {} outside {} to {}",
                self.unfair(),
                self.shares.len(),
                FAIR[0],
                FAIR[1]
            )?;
        }
        writeln!(out, "  loss {:.4}", self.loss())?;
        // Long, so only on request.
        if each {
            for (place, (ratios, drawn)) in self.ratios.iter().zip(&set.scenarios).enumerate() {
                let [first, second, third] = ratios;
                let description = &drawn.description;
                writeln!(out, "  {place:3}  {first:.2}  {second:.2}  {third:.2}  {description}")?;
            }
            for (place, (share, drawn)) in self.shares.iter().zip(&set.shared).enumerate() {
                writeln!(out, "  {place:3}  share {share:.2}  {}", drawn.description)?;
            }
        }
        Ok(())
    }

    fn all(&self) -> impl Iterator<Item = (f64, usize, usize)> {
        let of = |(place, ratios): (usize, &[f64; 3])| {
            let ratios = *ratios;
            (0..3).map(move |cost| (ratios[cost], place, cost))
        };
        self.ratios.iter().enumerate().flat_map(of)
    }
}

/// Returns the trial of a mechanism on a random scenario, with `default` beside it if the scenario specifies that.
fn trial(mechanism: &str, drawn: &Drawn) -> Result<Trial, String> {
    let contender = match drawn.defaults_in_four {
        0 => Contender::parse(mechanism),
        // Three clients in four have the mechanism, and the fourth has `default`.
        1 => Contender::parse(&format!("{mechanism}*3+default")),
        _ => Contender::parse(&format!("{mechanism}+default")),
    }?;
    Ok(Trial::of_totals(&drawn.scenario, contender, drawn.seeds))
}
