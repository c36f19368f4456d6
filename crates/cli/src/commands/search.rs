//! `coapace search`.

use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use coapace_lab::search::costs::Costs;
use coapace_lab::search::evaluation::{Evaluation, FAIR, Set, Yardstick};
use coapace_lab::search::halving::Halving;
use coapace_lab::search::journal::{Conditions, Journal};
use coapace_lab::search::space::Space;

use super::output::{COMMIT, jobs, remark};
use crate::arguments::{Arguments, Search};
use crate::{Failure, interrupt, progress};

/// The ratios that are listed of each mechanism, the greatest first.
const LISTED: usize = 5;

pub(crate) fn search(arguments: &Arguments, search: &Search) -> Result<(), Failure> {
    let stop = interrupt::watch();
    let set = Set::draw(search.generator_seed, search.scenarios)
        .map_err(|error| Failure::Input(error.to_string()))?;
    let conditions = Conditions {
        commit: COMMIT.to_owned(),
        generator_seed: search.generator_seed,
        scenarios: set.scenarios.len(),
    };
    let named = |error: io::Error| {
        let path = search.journal.as_deref().unwrap_or(Path::new("journal"));
        Failure::Input(format!("{}: {error}", path.display()))
    };
    let mut journal = Journal::open(search.journal.as_deref(), &conditions).map_err(named)?;
    let known = journal.evaluations();
    if known > 0 {
        remark(arguments, &format!("{known} evaluations were made before"));
    }
    let mut bench = Bench { arguments, set: &set, journal: &mut journal, stop };
    bench.measure_yardsticks()?;
    if search.vary.is_empty() {
        for mechanism in &search.mechanism {
            let evaluation = bench.evaluate(mechanism, set.scenarios.len())?;
            print(&evaluation, &set, search.each)?;
        }
        return Ok(());
    }
    let [mechanism] = &search.mechanism[..] else {
        return Err(Failure::Usage("parameters of one mechanism vary: name one".to_owned()));
    };
    let space = Space { mechanism: mechanism.clone(), varied: search.vary.clone() };
    let mut halving = Halving::new(&space, set.scenarios.len(), search.seed);
    let mut best = None;
    for _ in 0..search.brackets {
        let mut failed = None;
        let bracket =
            halving.bracket(&mut |place, scenarios| match bench.evaluate(&space.label(place), scenarios) {
                Ok(evaluation) => Some(evaluation.loss()),
                Err(failure) => {
                    failed = Some(failure);
                    None
                }
            });
        if bracket.is_none() {
            return Err(failed.unwrap_or_else(|| Failure::Interrupted("interrupted".to_owned())));
        }
        let found = halving.best().map(|(_, place)| space.label(place));
        if found.is_some() && found != best {
            best = found;
            if let Some(mechanism) = &best {
                print(&bench.evaluate(mechanism, set.scenarios.len())?, &set, false)?;
            }
        }
    }
    Ok(())
}

/// Measures, unless the journal knows.
struct Bench<'a> {
    arguments: &'a Arguments,
    set: &'a Set,
    journal: &'a mut Journal,
    stop: &'a AtomicBool,
}

impl Bench<'_> {
    fn measure_yardsticks(&mut self) -> Result<(), Failure> {
        let from = self.journal.yardsticks().len();
        let bar = progress::bar(self.set.scenarios.len(), self.arguments.quiet);
        bar.set_position(from as u64);
        bar.set_message("published mechanisms, scenario by scenario");
        for place in from..self.set.scenarios.len() {
            let yardstick = self.set.yardstick(place, jobs(self.arguments), self.stop);
            self.journal.add_yardstick(yardstick.ok_or_else(interrupted)?)?;
            bar.inc(1);
        }
        bar.finish_and_clear();
        Ok(())
    }

    /// Evaluates a mechanism on the first `scenarios`.
    fn evaluate(&mut self, mechanism: &str, scenarios: usize) -> Result<Evaluation, Failure> {
        if let Some(known) = self.journal.evaluation(mechanism, scenarios) {
            return Ok(known.clone());
        }
        let yardsticks: &[Yardstick] = &self.journal.yardsticks()[..scenarios];
        let evaluation = self.set.evaluate(mechanism, yardsticks, jobs(self.arguments), self.stop);
        let evaluation = evaluation.map_err(Failure::Usage)?.ok_or_else(interrupted)?;
        self.journal.add(evaluation.clone())?;
        if self.stop.load(Ordering::Relaxed) {
            return Err(interrupted());
        }
        Ok(evaluation)
    }
}

fn interrupted() -> Failure {
    Failure::Interrupted("interrupted: the journal has what was measured".to_owned())
}

/// Prints an evaluation; with `each`, also a line for each scenario.
fn print(evaluation: &Evaluation, set: &Set, each: bool) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    writeln!(out, "{}", evaluation.mechanism)?;
    let [mean, p90, transmissions] = [0, 1, 2].map(|cost| evaluation.geometric_mean(cost));
    writeln!(
        out,
        "  geometric mean   mean FCT {mean:.3}   p90 FCT {p90:.3}   transmissions {transmissions:.3}"
    )?;
    let mut ratios: Vec<(f64, usize, usize)> = Vec::new();
    for (place, of) in evaluation.ratios.iter().enumerate() {
        ratios.extend((0..3).map(|cost| (of[cost], place, cost)));
    }
    ratios.sort_by(|a, b| b.0.total_cmp(&a.0));
    for (ratio, place, cost) in ratios.iter().take(LISTED) {
        writeln!(
            out,
            "  {ratio:.2}  {} of scenario {place}: {}",
            Costs::NAMES[*cost],
            set.scenarios[*place].description
        )?;
    }
    if let Some([least, greatest]) = evaluation.shares() {
        let unfair = evaluation.shares.iter().filter(|share| !(FAIR[0]..=FAIR[1]).contains(*share)).count();
        writeln!(
            out,
            "  share beside default {least:.2} to {greatest:.2}, {unfair} of {} outside {} to {}",
            evaluation.shares.len(),
            FAIR[0],
            FAIR[1]
        )?;
    }
    writeln!(out, "  loss {:.4}", evaluation.loss())?;
    if each {
        for (place, ([mean, p90, transmissions], drawn)) in
            evaluation.ratios.iter().zip(&set.scenarios).enumerate()
        {
            writeln!(out, "  {place:3}  {mean:.2}  {p90:.2}  {transmissions:.2}  {}", drawn.description)?;
        }
        for (place, (share, drawn)) in evaluation.shares.iter().zip(&set.shared).enumerate() {
            writeln!(out, "  {place:3}  share {share:.2}  {}", drawn.description)?;
        }
    }
    Ok(out.flush()?)
}
