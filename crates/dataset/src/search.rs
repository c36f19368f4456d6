//! The tables of a search for parameters.

use arrow_schema::ArrowError;
use coapace_lab::output::{Sheet, SheetValue};
use coapace_lab::search::Search;
use coapace_lab::search::evaluation::Evaluation;

use crate::results::table;
use crate::{Table, Values};

/// Returns a row for each evaluation. Evaluations on more scenarios come first; among equals, those with less loss. The
/// columns are `mechanism`, `parameter.NAME` for each parameter that varies, the number of `scenarios`, `loss`, the
/// geometric means of the ratios (`mean_fct`, `p90_fct`, `transmissions`; of meshes `delivery`, `delay`,
/// `transmissions`), the `worst` ratio with its cost and its scenario, and the shares that the mechanism gets beside
/// `default`. Only evaluations on all scenarios have shares.
///
/// # Errors
/// An error of Arrow.
pub fn evaluations(search: &Search) -> Result<Table, ArrowError> {
    let mut evaluations: Vec<(f64, &Evaluation)> = search.evaluations().map(|it| (it.loss(), it)).collect();
    evaluations.sort_by(|(loss, it), (other_loss, other)| {
        // A search by halving drops mechanisms early, so a loss over fewer scenarios is not comparable.
        other.ratios.len().cmp(&it.ratios.len()).then(loss.total_cmp(other_loss))
    });
    let costs = search.set().networks.costs();
    let mut rows = Sheet::default();
    for (loss, evaluation) in evaluations {
        rows.add("mechanism", &evaluation.mechanism);
        for varied in &search.terms().vary {
            let name = &varied.parameter;
            rows.add(&format!("parameter.{name}"), parameter(&evaluation.mechanism, name));
        }
        rows.add("scenarios", count(evaluation.ratios.len()));
        rows.add("loss", SheetValue::Number(loss));
        add_costs(&mut rows, search, [0, 1, 2].map(|cost| evaluation.geometric_mean(cost)));
        let worst = evaluation.greatest().first().copied();
        rows.add("worst", worst.map(|(ratio, ..)| ratio));
        rows.add("worst_cost", worst.map_or(SheetValue::Nothing, |(.., cost)| costs[cost].name.into()));
        rows.add("worst_scenario", worst.map_or(SheetValue::Nothing, |(_, place, _)| count(place)));
        // Only evaluations on all scenarios have shares.
        let shares = evaluation.shares();
        rows.add("least_share", shares.map(|[least, _]| least));
        rows.add("greatest_share", shares.map(|[_, greatest]| greatest));
        rows.add("unfair", shares.map_or(SheetValue::Nothing, |_| count(evaluation.unfair())));
    }
    table(rows)
}

/// Returns a row for each scenario of each evaluation that used all scenarios: `mechanism`, `scenario`, its
/// `description`, and the ratios to the scenario's baseline, in columns with the same names as in [`evaluations`].
///
/// # Errors
/// An error of Arrow.
pub fn ratios(search: &Search) -> Result<Table, ArrowError> {
    let mut rows = Sheet::default();
    for evaluation in whole(search) {
        for (place, (ratios, drawn)) in evaluation.ratios.iter().zip(&search.set().scenarios).enumerate() {
            rows.add("mechanism", &evaluation.mechanism);
            rows.add("scenario", count(place));
            rows.add("description", &drawn.description);
            add_costs(&mut rows, search, *ratios);
        }
    }
    table(rows)
}

/// Returns a row for each scenario that a mechanism shares with `default`, of each evaluation that used all scenarios:
/// `mechanism`, `scenario`, its `description`, and the relative `share` of the mechanism.
///
/// # Errors
/// An error of Arrow.
pub fn shares(search: &Search) -> Result<Table, ArrowError> {
    let (mut mechanism, mut scenario, mut description, mut shares) = (vec![], vec![], vec![], vec![]);
    for evaluation in whole(search) {
        for (place, (share, drawn)) in evaluation.shares.iter().zip(&search.set().shared).enumerate() {
            mechanism.push(Some(evaluation.mechanism.clone()));
            scenario.push(i64::try_from(place).ok());
            description.push(Some(drawn.description.clone()));
            shares.push(Some(*share));
        }
    }
    // The columns are there without a row, too: meshes show no shares.
    Table::new(vec![
        ("mechanism".to_owned(), Values::Text(mechanism)),
        ("scenario".to_owned(), Values::Count(scenario)),
        ("description".to_owned(), Values::Text(description)),
        ("share".to_owned(), Values::Number(shares)),
    ])
}

/// Returns a row for each scenario: its number, its `description`, the lowest costs of any published mechanism with
/// random timeouts (`mean_fct_s`, `p90_fct_s`, `transmissions`; for meshes `delivery_s`, `delay_s`, `transmissions`),
/// and for each cost the name of the mechanism that reached it.
///
/// # Errors
/// An error of Arrow.
pub fn yardsticks(search: &Search) -> Result<Table, ArrowError> {
    let mut rows = Sheet::default();
    let yardsticks = search.journal().yardsticks().iter().zip(&search.set().scenarios);
    for (place, (yardstick, drawn)) in yardsticks.enumerate() {
        rows.add("scenario", count(place));
        rows.add("description", &drawn.description);
        for (cost, place) in search.set().networks.costs().into_iter().zip(0..) {
            rows.add(cost.metric, SheetValue::Number(yardstick.least[place]));
            rows.add(&format!("{}_best", cost.column), &yardstick.best[place]);
        }
    }
    table(rows)
}

/// Returns the evaluations that used all scenarios.
fn whole(search: &Search) -> impl Iterator<Item = &Evaluation> {
    search.evaluations().filter(|it| it.ratios.len() == search.set().scenarios.len())
}

/// Returns the value that the text of a mechanism gives a parameter; unknown if it gives none.
fn parameter(mechanism: &str, name: &str) -> SheetValue {
    let (_, parameters) = mechanism.split_once(':').unwrap_or_default();
    let mut parameters = parameters.split(',').filter_map(|parameter| parameter.split_once('='));
    // Settings apply from left to right, so the last one counts.
    let last = parameters.rfind(|(own, _)| *own == name);
    last.map_or(SheetValue::Nothing, |(_, value)| value.into())
}

fn count(number: usize) -> SheetValue {
    SheetValue::Count(number as u64)
}

/// Adds the ratio of each cost to a row, in a column with the name of the cost.
fn add_costs(rows: &mut Sheet, search: &Search, ratios: [f64; 3]) {
    for (cost, ratio) in search.set().networks.costs().into_iter().zip(ratios) {
        rows.add(cost.column, SheetValue::Number(ratio));
    }
}
