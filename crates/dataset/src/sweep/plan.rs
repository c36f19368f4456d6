//! The plan of a sweep and its runs.

use std::sync::Arc;

use coapace_lab::grid::PlanError;
use coapace_lab::results::CellResult;
use coapace_run::contender::Contender;
use coapace_run::{Observe, run};
use coapace_scenario::{Scenario, Source};

use super::columns::{Columns, Row};
use super::condition::Condition;
use super::{Batch, Key, Setting};

/// The maximum number of runs of a plan.
pub const MOST_UNITS: usize = 10_000_000;

/// Simulates one run, and returns its row of the dataset.
pub(super) fn make(condition: &Condition, contender: &Contender, seed: u64) -> Row {
    let runs = vec![run(&condition.scenario, contender, seed, Observe::Totals)];
    let result = CellResult { cell: condition.trial(contender, seed).cell(), runs };
    Row { key: Key::of(&condition.hash, &contender.label, seed), result }
}

/// One run of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unit {
    /// The key that identifies the run.
    pub key: Key,
    condition: u32,
    contender: u32,
    seed: u64,
}

/// Every mechanism under every condition with every seed.
#[derive(Debug)]
pub struct Plan {
    pub(super) source: Source,
    pub(super) base: Scenario,
    pub(super) conditions: Vec<Arc<Condition>>,
    pub(super) contenders: Vec<Contender>,
    /// The first seed, and the number of seeds.
    pub(super) seeds: (u64, u32),
    pub(super) columns: Columns,
    units: Vec<Unit>,
}

impl Plan {
    /// Makes a plan. `conditions` are settings of the scenario, such as a [grid](coapace_lab::grid::conditions)
    /// returns. If `mechanisms` is empty, the plan has the default mechanisms of the first condition. `seeds` is the
    /// first seed and the number of seeds; `None` means the number of seeds that the first condition specifies, from
    /// seed 1 on. Runs that are equal under two conditions are made once.
    ///
    /// # Errors
    /// A scenario or setting that cannot be read, a mechanism that is unknown or does not fit a condition, and a plan without
    /// runs or with more than [`MOST_UNITS`].
    pub fn new(
        source: Source,
        conditions: Vec<Vec<Setting>>,
        mechanisms: &[String],
        seeds: Option<(u64, u32)>,
    ) -> Result<Self, PlanError> {
        let template = source.template()?;
        let base = template.scenario(&[])?;
        let read = |settings| Condition::read(&template, settings).map(Arc::new);
        let conditions =
            // One more than the most shows that there are too many, without reading all of a huge grid.
            conditions.into_iter().take(MOST_UNITS + 1).map(read).collect::<Result<Vec<_>, _>>()?;
        let defaults = conditions.first().map_or(&base.defaults, |first| &first.scenario.defaults);
        let mechanisms = if mechanisms.is_empty() { &defaults.mechanisms } else { mechanisms };
        let contenders: Result<Vec<_>, _> = mechanisms.iter().map(|label| Contender::parse(label)).collect();
        let contenders = contenders.map_err(PlanError::Usage)?;
        let (first, count) = seeds.unwrap_or((1, defaults.seeds));
        // The last addition bounds the seeds: the range `first..first + count` must not wrap.
        // In 128 bits, because the product of three numbers may exceed 64.
        let number = conditions.len() as u128 * contenders.len() as u128 * u128::from(count);
        if number == 0 || number > MOST_UNITS as u128 || first.checked_add(u64::from(count)).is_none() {
            return Err(PlanError::Usage(format!(
                "{} conditions, {} mechanisms and {count} seeds are {number} runs; a sweep has 1 to {MOST_UNITS}",
                conditions.len(),
                contenders.len()
            )));
        }
        // Before any run: a contender that does not fit would otherwise fail after hours.
        for condition in &conditions {
            let fits = contenders.iter().try_for_each(|contender| contender.fits(&condition.scenario));
            fits.map_err(PlanError::Usage)?;
        }
        let columns = Columns::of(&conditions, &contenders);
        let mut units = Vec::new();
        for (condition, of) in (0..).zip(&conditions) {
            for (contender, with) in (0..).zip(&contenders) {
                units.extend((first..first + u64::from(count)).map(|seed| {
                    let key = Key::of(&of.hash, &with.label, seed);
                    Unit { key, condition, contender, seed }
                }));
            }
        }
        // The order is as good as random. So the remaining units take as long as the finished ones on average, and a sweep that is
        // stopped half-way has half of every condition.
        units.sort_by_key(|unit| unit.key);
        units.dedup_by_key(|unit| unit.key);
        Ok(Self { source, base, conditions, contenders, seeds: (first, count), columns, units })
    }

    /// Returns the runs, sorted by key.
    pub fn units(&self) -> &[Unit] {
        &self.units
    }

    /// Makes one run of this plan, and returns its row; `None` if the plan has no such run.
    pub(super) fn make(&self, unit: &Unit) -> Option<Row> {
        let condition = self.conditions.get(unit.condition as usize)?;
        Some(make(condition, self.contenders.get(unit.contender as usize)?, unit.seed))
    }

    /// Returns a batch: some runs of this plan, which another process makes as a part with these columns.
    pub fn batch(&self, columns: &Columns, units: &[Unit]) -> Batch {
        // Only the conditions of these units travel. A plan may have thousands.
        let mut places: Vec<u32> = units.iter().map(|unit| unit.condition).collect();
        places.sort_unstable();
        places.dedup();
        let settings = places.iter().filter_map(|&place| self.conditions.get(place as usize));
        // `places` is sorted and has the condition of every unit, so this is its index.
        let place = |unit: &Unit| places.partition_point(|&place| place < unit.condition);
        Batch::new(
            &self.source,
            columns.clone(),
            settings.map(|condition| condition.settings.clone()).collect(),
            self.contenders.iter().map(|contender| contender.label.clone()).collect(),
            units.iter().map(|unit| (place(unit), unit.contender as usize, unit.seed)).collect(),
        )
    }
}
