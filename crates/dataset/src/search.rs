//! The tables of a search for parameters.

use arrow_schema::ArrowError;
use coapace_lab::results::Value;
use coapace_lab::search::Search;
use coapace_lab::search::evaluation::Evaluation;

use crate::results::table;
use crate::{Table, Values};

/// Returns a row for each evaluation, those on the most scenarios first, and of these the one with the least loss:
/// `mechanism`, `parameter.NAME` for each parameter that varies, the number of `scenarios`, `loss`, the geometric means of the
/// ratios (`mean_fct`, `p90_fct`, `transmissions`; of meshes `delivery`, `delay`, `transmissions`), the `worst` ratio with its cost and its scenario, and the shares beside
/// `default`, which are known of evaluations on all scenarios.
///
/// # Errors
/// Fails if Arrow does.
pub fn evaluations(search: &Search) -> Result<Table, ArrowError> {
    let mut evaluations: Vec<(f64, &Evaluation)> = search.evaluations().map(|it| (it.loss(), it)).collect();
    evaluations.sort_by(|(loss, it), (other_loss, other)| {
        other.ratios.len().cmp(&it.ratios.len()).then(loss.total_cmp(other_loss))
    });
    let costs = search.set().networks.costs();
    let mut columns = Columns::default();
    for (loss, evaluation) in evaluations {
        columns.add("mechanism", &evaluation.mechanism);
        for varied in &search.terms().vary {
            let name = &varied.parameter;
            columns.add(&format!("parameter.{name}"), parameter(&evaluation.mechanism, name));
        }
        columns.add("scenarios", count(evaluation.ratios.len()));
        columns.add("loss", Value::Number(loss));
        columns.add_costs(search, [0, 1, 2].map(|cost| evaluation.geometric_mean(cost)));
        let worst = evaluation.greatest().first().copied();
        columns.add("worst", worst.map(|(ratio, ..)| ratio));
        columns.add("worst_cost", worst.map_or(Value::Nothing, |(.., cost)| costs[cost].name.into()));
        columns.add("worst_scenario", worst.map_or(Value::Nothing, |(_, place, _)| count(place)));
        let shares = evaluation.shares();
        columns.add("least_share", shares.map(|[least, _]| least));
        columns.add("greatest_share", shares.map(|[_, greatest]| greatest));
        columns.add("unfair", shares.map_or(Value::Nothing, |_| count(evaluation.unfair())));
    }
    table(columns.0)
}

/// Returns a row for each scenario of each evaluation on all of them: `mechanism`, `scenario`, its `description`, and the ratios
/// to its yardstick, in columns like those of [`evaluations`].
///
/// # Errors
/// Fails if Arrow does.
pub fn ratios(search: &Search) -> Result<Table, ArrowError> {
    let mut columns = Columns::default();
    for evaluation in whole(search) {
        for (place, (ratios, drawn)) in evaluation.ratios.iter().zip(&search.set().scenarios).enumerate() {
            columns.add("mechanism", &evaluation.mechanism);
            columns.add("scenario", count(place));
            columns.add("description", &drawn.description);
            columns.add_costs(search, *ratios);
        }
    }
    table(columns.0)
}

/// Returns a row for each scenario that `default` shares, of each evaluation on all scenarios: `mechanism`, `scenario`, its
/// `description`, and the relative `share` of the mechanism.
///
/// # Errors
/// Fails if Arrow does.
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

/// Returns a row for each scenario: its number, its `description`, the least costs of any published mechanism that dithers
/// (`mean_fct_s`, `p90_fct_s`, `transmissions`; of meshes `delivery_s`, `delay_s`, `transmissions`), and the mechanism that has each.
///
/// # Errors
/// Fails if Arrow does.
pub fn yardsticks(search: &Search) -> Result<Table, ArrowError> {
    let mut columns = Columns::default();
    let yardsticks = search.journal().yardsticks().iter().zip(&search.set().scenarios);
    for (place, (yardstick, drawn)) in yardsticks.enumerate() {
        columns.add("scenario", count(place));
        columns.add("description", &drawn.description);
        for (cost, place) in search.set().networks.costs().into_iter().zip(0..) {
            columns.add(cost.figure, Value::Number(yardstick.least[place]));
            columns.add(&format!("{}_best", cost.column), &yardstick.best[place]);
        }
    }
    table(columns.0)
}

/// Returns the evaluations on all scenarios.
fn whole(search: &Search) -> impl Iterator<Item = &Evaluation> {
    search.evaluations().filter(|it| it.ratios.len() == search.set().scenarios.len())
}

/// Returns the value of a parameter in the name of a mechanism.
fn parameter(mechanism: &str, name: &str) -> Value {
    let (_, parameters) = mechanism.split_once(':').unwrap_or_default();
    let mut parameters = parameters.split(',').filter_map(|parameter| parameter.split_once('='));
    let last = parameters.rfind(|(own, _)| *own == name);
    last.map_or(Value::Nothing, |(_, value)| value.into())
}

fn count(number: usize) -> Value {
    Value::Count(number as u64)
}

/// The columns of a table, which is filled value by value. Every row has all columns.
#[derive(Default)]
struct Columns(Vec<(String, Vec<Value>)>);

impl Columns {
    fn add(&mut self, name: &str, value: impl Into<Value>) {
        match self.0.iter_mut().find(|(own, _)| own == name) {
            Some((_, values)) => values.push(value.into()),
            None => self.0.push((name.to_owned(), vec![value.into()])),
        }
    }

    /// Adds a ratio for each cost.
    fn add_costs(&mut self, search: &Search, ratios: [f64; 3]) {
        for (cost, ratio) in search.set().networks.costs().into_iter().zip(ratios) {
            self.add(cost.column, Value::Number(ratio));
        }
    }
}
