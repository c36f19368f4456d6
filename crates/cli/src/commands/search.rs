//! `coapace search`.

use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use coapace_lab::contender::Contender;
use coapace_lab::search::costs::NAMES;
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
    let space = space(search).map_err(Failure::Usage)?;
    let stop = interrupt::watch();
    let set = Set::draw(search.generator_seed, search.scenarios)
        .map_err(|error| Failure::Input(error.to_string()))?;
    let all = set.scenarios.len();
    let conditions =
        Conditions { commit: COMMIT.to_owned(), generator_seed: search.generator_seed, scenarios: all };
    let path = search.journal.as_deref();
    let named =
        |error| Failure::Input(format!("{}: {error}", path.unwrap_or(Path::new("journal")).display()));
    let mut journal = Journal::open(path, &conditions).map_err(named)?;
    let known = journal.evaluations();
    if known > 0 {
        remark(arguments, &format!("{known} evaluations were made before"));
    }
    let mut bench = Bench { arguments, set: &set, journal: &mut journal, stop };
    bench.measure_yardsticks()?;
    let Some(space) = space else {
        for mechanism in &search.mechanism {
            print(&bench.evaluate(mechanism, all)?, &set, search.each)?;
        }
        return Ok(());
    };
    let mut halving = Halving::new(&space, all, search.seed);
    let mut best = None;
    for _ in 0..search.brackets {
        halving.bracket::<Failure>(&mut |place, scenarios| {
            Ok(bench.evaluate(&space.label(place), scenarios)?.loss())
        })?;
        let found = halving.best().map(|(_, place)| space.label(place));
        if let Some(mechanism) = found.as_ref().filter(|_| found != best) {
            print(&bench.evaluate(mechanism, all)?, &set, false)?;
        }
        best = found;
    }
    Ok(())
}

/// Returns the parameters to vary, if any are. Every mechanism and every value is looked at before anything is measured.
fn space(search: &Search) -> Result<Option<Space>, String> {
    let parse = |label: &str| match Contender::parse(label)?.only() {
        Some(_) => Ok(()),
        None => Err(format!("{label:?} is not a single mechanism over UDP")),
    };
    search.mechanism.iter().try_for_each(|label| parse(label))?;
    if search.vary.is_empty() {
        return Ok(None);
    }
    let [mechanism] = &search.mechanism[..] else {
        return Err("parameters of one mechanism vary: name one".to_owned());
    };
    for varied in &search.vary {
        let alone = Space { mechanism: mechanism.clone(), varied: vec![varied.clone()] };
        (0..varied.values.len()).try_for_each(|value| parse(&alone.label(&vec![value])))?;
    }
    Ok(Some(Space { mechanism: mechanism.clone(), varied: search.vary.clone() }))
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
    for (ratio, place, cost) in evaluation.greatest().into_iter().take(LISTED) {
        writeln!(
            out,
            "  {ratio:.2}  {} of scenario {place}: {}",
            NAMES[cost], set.scenarios[place].description
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
