//! The tables of results.

use arrow_schema::ArrowError;
use coapace_lab::coexistence::Matrix;
use coapace_lab::output::{RowFormat, Rows, Sheet, SheetValue, order_rows};
use coapace_lab::papers::References;
use coapace_lab::rank::{Ranking, Worst};
use coapace_lab::results::CellResult;
use coapace_run::measured::{RunResult, Series};

use crate::{Table, VERSION, Values};

/// Returns a row for each cell, its runs pooled: the columns of `coapace run --format csv`.
///
/// # Errors
/// Fails if Arrow does.
pub fn cells(results: &[CellResult], references: &References) -> Result<Table, ArrowError> {
    rows(results, references, false, VERSION)
}

/// Returns a row for each run: the columns of `coapace run --each --format csv`.
///
/// # Errors
/// Fails if Arrow does.
pub fn runs(results: &[CellResult], references: &References) -> Result<Table, ArrowError> {
    rows(results, references, true, VERSION)
}

/// Returns the table of [`cells`], or of [`runs`] if `each` run has a row. Its column `commit` has this `commit`.
///
/// # Errors
/// Fails if Arrow does.
pub fn rows(
    results: &[CellResult],
    references: &References,
    each: bool,
    commit: &str,
) -> Result<Table, ArrowError> {
    table(Rows::new(results, references, RowFormat::Csv, each, commit).sheet(results))
}

/// Makes a table of a sheet.
pub(crate) fn table(sheet: Sheet) -> Result<Table, ArrowError> {
    Table::new(sheet.0.into_iter().map(|(name, values)| (name, Values::of(values))).collect())
}

/// Returns a row for each client of each run: its cell's place in [`cells`], `mechanism`, `seed`, `client` from 0, `fct_s`
/// (unknown for a client that gave up), and its `exchanges`.
///
/// # Errors
/// Fails if Arrow does.
pub fn clients(results: &[CellResult]) -> Result<Table, ArrowError> {
    let mut places = Vec::new();
    let (mut mechanism, mut seed, mut client) = (Vec::new(), Vec::new(), Vec::new());
    let (mut fct, mut exchanges) = (Vec::new(), Vec::new());
    for (place, cell) in results.iter().enumerate() {
        for run in &cell.runs {
            for (number, completed) in run.exchanges.iter().enumerate() {
                places.push(i64::try_from(place).ok());
                mechanism.push(Some(cell.cell.label().to_owned()));
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

/// A quantity over time: its name, and its series of a run.
type OfSeries = (&'static str, fn(&RunResult) -> &Vec<Series>);

/// Returns a row for each point of each time series: its cell's place in [`cells`], `mechanism`, `seed`, `quantity` (`rto_s` of
/// clients, `queue_bytes` of hops), the `name` of the client or the hop, `t_s` and `value`. The first seed of a cell alone has
/// series.
///
/// # Errors
/// Fails if Arrow does.
pub fn series(results: &[CellResult]) -> Result<Table, ArrowError> {
    const QUANTITIES: [OfSeries; 2] = [("rto_s", |run| &run.rto), ("queue_bytes", |run| &run.queues)];
    let mut places = Vec::new();
    let (mut mechanism, mut seed) = (Vec::new(), Vec::new());
    let (mut quantities, mut names) = (Vec::new(), Vec::new());
    let (mut times, mut values) = (Vec::new(), Vec::new());
    for (place, cell) in results.iter().enumerate() {
        for run in &cell.runs {
            for (quantity, of) in QUANTITIES {
                for series in of(run) {
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

/// Returns a row for each published figure beside the measured one: its cell's place in [`cells`], the conditions, `metric`,
/// `published`, `measured` (unknown if some seed has no value), `relative_error`, and for a figure of a table of the paper the
/// `factor` between both, the `table`, the `table_factor` that is asked for, and whether the figure is `within` it. `source` is the
/// place where it is printed.
///
/// # Errors
/// Fails if Arrow does.
pub fn figures(results: &[CellResult], references: &References) -> Result<Table, ArrowError> {
    const NAMES: [&str; 14] = [
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
        "source",
    ];
    let mut columns = NAMES.map(|name| (name.to_owned(), Vec::new()));
    for (place, result) in results.iter().enumerate() {
        let Some(published) = references.published(&result.cell) else { continue };
        let cell = &result.cell;
        for figure in references.compared(result) {
            let table = published.tables.get(&figure.metric);
            let factor = figure.factor();
            let within = table.map(|table| factor.is_some_and(|factor| factor <= table.factor));
            let row = [
                SheetValue::Count(place as u64),
                (&cell.scenario).into(),
                (&cell.workload).into(),
                SheetValue::Count(cell.clients.into()),
                cell.label().into(),
                figure.metric.name().into(),
                SheetValue::Number(figure.published),
                figure.measured.into(),
                figure.relative_error().into(),
                factor.into(),
                table.map_or(SheetValue::Nothing, |table| (&table.title).into()),
                table.map(|table| table.factor).into(),
                within.map_or(SheetValue::Nothing, SheetValue::Flag),
                (&published.source).into(),
            ];
            for ((_, column), value) in columns.iter_mut().zip(row) {
                column.push(value);
            }
        }
    }
    table(Sheet(columns.into()))
}

/// Returns a row for each published order, the worst first: the columns of `coapace reproduce --orders --format csv`.
///
/// # Errors
/// Fails if Arrow does.
pub fn orders(results: &[CellResult], references: &References) -> Result<Table, ArrowError> {
    table(order_rows(VERSION, results, references))
}

/// Returns a row for each mechanism with each other: the columns of `coapace run coexistence --pairs --format csv`.
///
/// # Errors
/// Fails if Arrow does.
pub fn pairs(matrix: &Matrix) -> Result<Table, ArrowError> {
    table(matrix.rows(VERSION))
}

/// Returns a row for each figure of each mechanism in each cell: the columns of `coapace rank --format csv`.
///
/// # Errors
/// Fails if Arrow does.
pub fn ratios(ranking: &Ranking) -> Result<Table, ArrowError> {
    table(ranking.rows(VERSION))
}

/// Returns a row for each mechanism of a ranking, in the order of its table: its `section`, the `worst` ratio with its interval,
/// its place (`worst_cell`, `worst_metric`), the `geometric_mean`, and how many of all cells and figures are within 5 % of the best.
///
/// # Errors
/// Fails if Arrow does.
pub fn standings(ranking: &Ranking) -> Result<Table, ArrowError> {
    let all = &ranking.standings;
    let mut sheet = Sheet::default();
    sheet.push("mechanism", all.iter().map(|it| (&ranking.mechanisms[it.mechanism]).into()));
    sheet.push("section", all.iter().map(|it| it.section.word().into()));
    push_worst(&mut sheet, ranking, &all.iter().map(|it| it.worst).collect::<Vec<_>>());
    sheet.push("geometric_mean", all.iter().map(|it| SheetValue::Number(it.geometric_mean)));
    sheet.push("cells_near", all.iter().map(|it| SheetValue::Count(it.cells_near as u64)));
    sheet.push("cells", all.iter().map(|it| SheetValue::Count(it.cells as u64)));
    sheet.push("figures_near", all.iter().map(|it| SheetValue::Count(it.figures_near as u64)));
    sheet.push("figures", all.iter().map(|it| SheetValue::Count(it.figures as u64)));
    table(sheet)
}

/// Returns the results of choosing the best mechanism in each cell, with the columns of [`standings`]: a row `hindsight` for the
/// published mechanisms, and a row `hindsight*` if this project made any ranked one. A ranking of a single cell has no such row,
/// because its first mechanism is the best.
///
/// # Errors
/// Fails if Arrow does.
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

/// Adds the columns of the worst ratios and of their places.
fn push_worst(sheet: &mut Sheet, ranking: &Ranking, all: &[Option<Worst>]) {
    let interval = |it: &Option<Worst>| it.and_then(|worst| worst.ratio.interval);
    sheet.push("worst", all.iter().map(|it| it.map(|worst| worst.ratio.mean).into()));
    sheet.push("worst_low", all.iter().map(|it| interval(it).map(|(low, _)| low).into()));
    sheet.push("worst_high", all.iter().map(|it| interval(it).map(|(_, high)| high).into()));
    let cell = |worst: Worst| &ranking.cells[worst.cell];
    let name = |it: &Option<Worst>| it.map_or(SheetValue::Nothing, |worst| (&cell(worst).name).into());
    sheet.push("worst_cell", all.iter().map(name));
    let metric = |worst: Worst| cell(worst).figures[worst.figure].metric.name().into();
    sheet.push("worst_metric", all.iter().map(|it| it.map_or(SheetValue::Nothing, metric)));
}
