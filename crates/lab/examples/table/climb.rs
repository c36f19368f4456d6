//! A climb from table to table. Each candidate is the best table so far with one rule changed. It is measured on a third of the
//! scenarios, and then on all if it does well there.

use coapace_sim::{Luck, Stream};

use crate::sight::{PATHS, features};
use crate::table::{Decision, Table};

/// The share of the scenarios that a table is measured on first: a third.
const SHARE: usize = 3;

/// A table is measured on all scenarios if its loss on the share is at most this many times the loss of the best table there. The
/// worst ratios, which make up the loss, may come from the other scenarios.
const SLACK: f64 = 1.02;

/// A climb, and the best table so far.
#[derive(Debug)]
pub(crate) struct Climb {
    table: Table,
    /// The losses of the best table on a share of the scenarios and on all; infinite before the first step.
    losses: [f64; 2],
    scenarios: usize,
    dice: Stream,
    /// The number of steps made. The first measures the table that the climb begins with.
    steps: u64,
}

impl Climb {
    /// Begins at `table`, over `scenarios` scenarios, with the random numbers of `seed`.
    pub(crate) fn new(table: Table, scenarios: usize, seed: u64) -> Self {
        let dice = Luck::new(seed).stream("climb");
        Self { table, losses: [f64::INFINITY; 2], scenarios, dice, steps: 0 }
    }

    /// Returns the best table so far.
    pub(crate) fn best(&self) -> &Table {
        &self.table
    }

    /// Makes a step. `loss` evaluates a table on the first scenarios, as many as its second argument says. Returns the loss on
    /// all scenarios if the step finds a new best table.
    ///
    /// # Errors
    /// Returns the error of `loss`. The step does not count then.
    pub(crate) fn step<E>(
        &mut self,
        loss: &mut dyn FnMut(&Table, usize) -> Result<f64, E>,
    ) -> Result<Option<f64>, E> {
        let candidate = self.candidate();
        let mut losses = [f64::INFINITY; 2];
        if self.steps == 0 || candidate != self.table {
            losses[0] = loss(&candidate, (self.scenarios / SHARE).max(1))?;
            if losses[0] <= SLACK * self.losses[0] {
                losses[1] = loss(&candidate, self.scenarios)?;
            }
        }
        self.steps += 1;
        let is_better = losses[1] < self.losses[1];
        if is_better {
            (self.table, self.losses) = (candidate, losses);
        }
        Ok(is_better.then_some(losses[1]))
    }

    /// Returns the best table with one rule changed: in all cells that agree in some features, one decision takes the action
    /// before, the next action, or one action everywhere. The first candidate is the table itself.
    fn candidate(&self) -> Table {
        let mut table = self.table;
        let Some(step) = self.steps.checked_sub(1) else { return table };
        let roll = |below: usize, what: u64| self.dice.below(below as u64, step, what, 0) as usize;
        let decision = Decision::ALL[roll(Decision::ALL.len(), 0)];
        let path = (roll(4, 1) > 0).then(|| roll(PATHS.len(), 2));
        let [lossy, again] = [3, 4].map(|what| [None, Some(0), Some(1)][roll(3, what)]);
        let last = decision.actions() - 1;
        let (change, any) = (roll(3, 5), roll(usize::from(decision.actions()), 6) as u8);
        for (cell, action) in table.row(decision).iter_mut().enumerate() {
            let mut agreed = [path, lossy, again].into_iter().zip(features(cell));
            if agreed.all(|(wanted, own)| wanted.is_none_or(|wanted| wanted == own)) {
                *action = [action.saturating_sub(1), (*action + 1).min(last), any][change];
            }
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sight::cell;

    /// Returns how far the table is from a backoff of 3 where the last exchange was lossy, in actions.
    fn away(table: &Table) -> f64 {
        let lossy = (0..PATHS.len()).flat_map(|path| [cell(path, true, false), cell(path, true, true)]);
        lossy.map(|cell| f64::from({ *table }.row(Decision::Backoff)[cell].abs_diff(4))).sum()
    }

    #[test]
    fn a_climb_finds_a_rule_and_measures_few_tables_on_all_scenarios() {
        let mut climb = Climb::new(Table::DEFAULT, 90, 1);
        let (mut on_share, mut on_all) = (0, 0);
        for _ in 0..4000 {
            climb
                .step::<()>(&mut |table, scenarios| {
                    *if scenarios == 90 { &mut on_all } else { &mut on_share } += 1;
                    assert!(scenarios == 90 || scenarios == 30);
                    Ok(1.0 + away(table))
                })
                .unwrap();
        }
        assert!(away(climb.best()) < 0.5, "{}", climb.best().label());
        assert!(on_all < on_share, "{on_all} of {on_share}");
    }

    #[test]
    fn a_step_that_fails_is_made_again_and_a_seed_makes_a_climb_again() {
        let tables = |seed| {
            let mut climb = Climb::new(Table::DEFAULT, 9, seed);
            let mut seen = Vec::new();
            for step in 0..20 {
                let made = climb.step(&mut |table, scenarios| {
                    seen.push((table.label(), scenarios));
                    if seen.len() == 7 { Err("ended") } else { Ok(away(table)) }
                });
                assert_eq!(made.is_err(), seen.len() == 7, "{step}");
            }
            seen
        };
        let seen = tables(1);
        assert_eq!(seen[6], seen[7]);
        assert_eq!(seen, tables(1));
        assert_ne!(seen, tables(2));
    }
}
