//! Results as tables.

use arrow_schema::ArrowError;
use coapace_lab::coexistence::Matrix;
use coapace_lab::output::{RowFormat, Rows, Sheet, SheetValue, order_rows};
use coapace_lab::papers::{Judged, References, judged};
use coapace_lab::rank::{Ranking, Worst};
use coapace_lab::results::CellResult;
use coapace_run::measured::{RunResult, Series};

use crate::{Table, VERSION, Values};

/// Returns a row for each cell, its runs pooled: the columns of `coapace run --format csv`.
///
/// # Errors
/// An error of Arrow.
pub fn cells(results: &[CellResult], references: &References) -> Result<Table, ArrowError> {
    rows(results, references, false, VERSION)
}

/// Returns a row for each run: the columns of `coapace run --each --format csv`.
///
/// # Errors
/// An error of Arrow.
pub fn runs(results: &[CellResult], references: &References) -> Result<Table, ArrowError> {
    rows(results, references, true, VERSION)
}

/// Returns the table of [`cells`], or of [`runs`] if `each` is true. Its column `commit` has the value `commit` in all
/// rows.
///
/// # Errors
/// An error of Arrow.
pub fn rows(
    results: &[CellResult],
    references: &References,
    each: bool,
    commit: &str,
) -> Result<Table, ArrowError> {
    table(Rows::new(results, references, RowFormat::Csv, each, commit).sheet(results))
}

/// Converts a sheet to a table.
pub(crate) fn table(sheet: Sheet) -> Result<Table, ArrowError> {
    Table::new(sheet.0.into_iter().map(|(name, values)| (name, Values::of(values))).collect())
}

/// Returns a row for each client of each run: its cell's row number in [`cells`], `mechanism`, `seed`, `client` from 0, `fct_s`
/// (unknown for a client that gave up), and its `exchanges`.
///
/// # Errors
/// An error of Arrow.
pub fn clients(results: &[CellResult]) -> Result<Table, ArrowError> {
    let mut places = Vec::new();
    let (mut mechanism, mut seed, mut client) = (Vec::new(), Vec::new(), Vec::new());
    let (mut fct, mut exchanges) = (Vec::new(), Vec::new());
    for (place, cell) in results.iter().enumerate() {
        for run in &cell.runs {
            // Every client has a number of exchanges. Without a fixed number of exchanges none has a completion time.
            for (number, completed) in run.exchanges.iter().enumerate() {
                places.push(i64::try_from(place).ok());
                mechanism.push(Some(cell.cell.label().to_owned()));
                // Arrow's integers are signed here. A seed from 2^63 on is unknown in the table.
                seed.push(i64::try_from(run.seed).ok());
                client.push(i64::try_from(number).ok());
                fct.push(run.fct_s.get(number).copied().flatten());
                exchanges.push(Some(i64::from(*completed)));
            }
        }
    }
    Table::new(vec![
        ("cell".to_owned(), Values::Count(places)),
        ("mechanism".to_owned(), Values::Text(mechanism)),
        ("seed".to_owned(), Values::Count(seed)),
        ("client".to_owned(), Values::Count(client)),
        ("fct_s".to_owned(), Values::Number(fct)),
        ("exchanges".to_owned(), Values::Count(exchanges)),
    ])
}

/// A quantity over time: its name, and the function that returns its time series in a run.
type OfSeries = (&'static str, fn(&RunResult) -> &Vec<Series>);

/// Returns a row for each point of each time series: its cell's row number in [`cells`], `mechanism`, `seed`, `quantity`
/// (`rto_s` of clients, `queue_bytes` of hops), the `name` of the client or the hop, `t_s` and `value`. Only the first seed of
/// a cell has series.
///
/// # Errors
/// An error of Arrow.
pub fn series(results: &[CellResult]) -> Result<Table, ArrowError> {
    // The columns are typed by hand, because their types must not depend on whether there are series.
    const QUANTITIES: [OfSeries; 2] = [("rto_s", |run| &run.rto), ("queue_bytes", |run| &run.queues)];
    let mut places = Vec::new();
    let (mut mechanism, mut seed) = (Vec::new(), Vec::new());
    let (mut quantities, mut names) = (Vec::new(), Vec::new());
    let (mut times, mut values) = (Vec::new(), Vec::new());
    for (place, cell) in results.iter().enumerate() {
        for run in &cell.runs {
            for (quantity, of) in QUANTITIES {
                for series in of(run) {
                    // One row for each point repeats names, which Parquet and Arrow store well, and every reader can filter.
                    for &(t_s, value) in &series.points {
                        places.push(i64::try_from(place).ok());
                        mechanism.push(Some(cell.cell.label().to_owned()));
                        seed.push(i64::try_from(run.seed).ok());
                        quantities.push(Some(quantity.to_owned()));
                        names.push(Some(series.name.clone()));
                        times.push(Some(t_s));
                        values.push(Some(value));
                    }
                }
            }
        }
    }
    Table::new(vec![
        ("cell".to_owned(), Values::Count(places)),
        ("mechanism".to_owned(), Values::Text(mechanism)),
        ("seed".to_owned(), Values::Count(seed)),
        ("quantity".to_owned(), Values::Text(quantities)),
        ("name".to_owned(), Values::Text(names)),
        ("t_s".to_owned(), Values::Number(times)),
        ("value".to_owned(), Values::Number(values)),
    ])
}

/// Returns a row for each published value: the row number of its cell in [`cells`], the conditions, the `metric`, the
/// `published` value, the simulated value as `measured` (unknown if some seed has none), the `relative_error`, and as
/// `source` the place where the value is printed. A value in a table of the paper also has the `factor` between both
/// values, the `table`, the allowed factor as `table_factor`, and whether the value is `within` it. If an independent
/// witness, such as another simulator, has measured the value, the row has its lowest and highest result
/// (`witness_low`, `witness_high`), and whether the value is `within_witness` by the same factor.
///
/// # Errors
/// An error of Arrow.
pub fn values(results: &[CellResult], references: &References) -> Result<Table, ArrowError> {
    const NAMES: [&str; 17] = [
        "cell",
        "scenario",
        "workload",
        "clients",
        "mechanism",
        "metric",
        "published",
        "measured",
        "relative_error",
        "factor",
        "table",
        "table_factor",
        "within",
        "witness_low",
        "witness_high",
        "within_witness",
        "source",
    ];
    let mut columns = NAMES.map(|name| (name.to_owned(), Vec::new()));
    for (place, result) in results.iter().enumerate() {
        // Cells without published values have no row, so the places in the column `cell` may skip some.
        let Some(published) = references.published(&result.cell) else { continue };
        let cell = &result.cell;
        let judged = judged(std::slice::from_ref(result), references);
        for value in references.compared(result) {
            let table = published.tables.get(&value.metric);
            // Only values from a table of a paper are judged by a factor. Others have empty fields here.
            let own = judged.iter().find(|one| one.value.metric == value.metric);
            let witness = own.and_then(|one| one.witness);
            let row = [
                SheetValue::Count(place as u64),
                (&cell.scenario).into(),
                (&cell.workload).into(),
                SheetValue::Count(cell.clients.into()),
                cell.label().into(),
                value.metric.name().into(),
                SheetValue::Number(value.published),
                value.measured.into(),
                value.relative_error().into(),
                value.factor().into(),
                table.map_or(SheetValue::Nothing, |table| (&table.title).into()),
                table.map(|table| table.factor).into(),
                own.map_or(SheetValue::Nothing, |one| SheetValue::Flag(one.within())),
                witness.map(|witness| witness.low).into(),
                witness.map(|witness| witness.high).into(),
                (own.and_then(Judged::by_witness))
                    .map_or(SheetValue::Nothing, |one| SheetValue::Flag(one.within())),
                (&published.source).into(),
            ];
            for ((_, column), value) in columns.iter_mut().zip(row) {
                column.push(value);
            }
        }
    }
    table(Sheet(columns.into()))
}

/// Returns a row for each published ranking, the worst first: the columns of `coapace reproduce --orders --format csv`.
///
/// # Errors
/// An error of Arrow.
pub fn orders(results: &[CellResult], references: &References) -> Result<Table, ArrowError> {
    table(order_rows(VERSION, results, references))
}

/// Returns a row for each mechanism beside each other mechanism on one network. The columns are as in `coapace run
/// coexistence --pairs --format csv`.
///
/// # Errors
/// An error of Arrow.
pub fn pairs(matrix: &Matrix) -> Result<Table, ArrowError> {
    table(matrix.rows(VERSION))
}

/// Returns the ratios of a ranking (how many times worse than the best), a row for each condition, mechanism and metric.
/// The columns are the columns of `coapace rank --format csv`.
///
/// # Errors
/// An error of Arrow.
pub fn ratios(ranking: &Ranking) -> Result<Table, ArrowError> {
    table(ranking.rows(VERSION))
}

/// Returns a row for each mechanism of a ranking, in order of rank: its `section`, the `worst` ratio with its interval,
/// the cell and metric of this ratio (`worst_cell`, `worst_metric`), the `geometric_mean`, and how many of all cells
/// and metrics are within 5 % of the best.
///
/// # Errors
/// An error of Arrow.
pub fn standings(ranking: &Ranking) -> Result<Table, ArrowError> {
    let all = &ranking.standings;
    let mut sheet = Sheet::default();
    sheet.push("mechanism", all.iter().map(|it| (&ranking.mechanisms[it.mechanism]).into()));
    sheet.push("section", all.iter().map(|it| it.section.word().into()));
    push_worst(&mut sheet, ranking, &all.iter().map(|it| it.worst).collect::<Vec<_>>());
    sheet.push("geometric_mean", all.iter().map(|it| SheetValue::Number(it.geometric_mean)));
    sheet.push("cells_near", all.iter().map(|it| SheetValue::Count(it.cells_near as u64)));
    sheet.push("cells", all.iter().map(|it| SheetValue::Count(it.cells as u64)));
    sheet.push("metrics_near", all.iter().map(|it| SheetValue::Count(it.metrics_near as u64)));
    sheet.push("metrics", all.iter().map(|it| SheetValue::Count(it.metrics as u64)));
    table(sheet)
}

/// Returns the ratios of an oracle that chooses the best mechanism in each cell, with columns of [`standings`]: a row
/// `hindsight` that chooses among published mechanisms, and a row `hindsight*` that also chooses among mechanisms of
/// this project, if any is ranked. A ranking of a single cell has no such rows, because its first mechanism is the
/// best.
///
/// # Errors
/// An error of Arrow.
pub fn hindsight(ranking: &Ranking) -> Result<Table, ArrowError> {
    let all = ranking.hindsight_rows();
    let mut sheet = Sheet::default();
    sheet.push("name", all.iter().map(|it| it.name().into()));
    push_worst(&mut sheet, ranking, &all.iter().map(|it| Some(it.worst)).collect::<Vec<_>>());
    sheet.push("geometric_mean", all.iter().map(|it| SheetValue::Number(it.geometric_mean)));
    sheet.push("cells_near", all.iter().map(|it| SheetValue::Count(it.cells_near as u64)));
    sheet.push("cells", all.iter().map(|_| SheetValue::Count(ranking.cells.len() as u64)));
    table(sheet)
}

/// Adds the columns with the worst ratio of each row, its interval, and the cell and metric where it occurs.
fn push_worst(sheet: &mut Sheet, ranking: &Ranking, all: &[Option<Worst>]) {
    let interval = |it: &Option<Worst>| it.and_then(|worst| worst.ratio.interval);
    sheet.push("worst", all.iter().map(|it| it.map(|worst| worst.ratio.mean).into()));
    sheet.push("worst_low", all.iter().map(|it| interval(it).map(|(low, _)| low).into()));
    sheet.push("worst_high", all.iter().map(|it| interval(it).map(|(_, high)| high).into()));
    let cell = |worst: Worst| &ranking.cells[worst.cell];
    let name = |it: &Option<Worst>| it.map_or(SheetValue::Nothing, |worst| (&cell(worst).name).into());
    sheet.push("worst_cell", all.iter().map(name));
    let metric = |worst: Worst| cell(worst).metrics[worst.metric].metric.name().into();
    sheet.push("worst_metric", all.iter().map(|it| it.map_or(SheetValue::Nothing, metric)));
}
