//! `coapace run --pairs`.

use std::io::{self, BufWriter, Write};
use std::sync::Arc;
use std::time::Instant;

use coapace_lab::coexistence::{self, Matrix, trials};
use coapace_lab::experiment::runs;
use coapace_lab::grid::conditions;
use coapace_lab::papers::References;
use coapace_report::{CellGroup, Report};
use coapace_run::contender::Contender;
use coapace_scenario::Scenario;

use super::output::{Conducted, conduct, create_dir, report, set_seeds, write_report};
use crate::arguments::{Arguments, OutputFormat, RunArguments, Seeds};
use crate::draft::Draft;
use crate::shown::remark;
use crate::{COMMIT, Failure};

/// Runs every pair of mechanisms in the network of a scenario.
pub(super) fn run(arguments: &Arguments, run: &RunArguments) -> Result<(), Failure> {
    let conditions = conditions(&run.set).map_err(Failure::Usage)?;
    let [settings] = conditions.as_slice() else {
        return Err(Failure::Usage(format!(
            "--pairs needs one condition, and --set makes {}: run the command once for each",
            conditions.len()
        )));
    };
    let scenario = Arc::new(Scenario::load(&run.scenario, settings)?);
    let mechanisms = Contender::paired(&run.mechanism, &scenario).map_err(Failure::Usage)?;
    let seeds = run.seeds.unwrap_or(Seeds::up_to(coexistence::SEEDS));
    let mut trials = trials(&scenario, &mechanisms, seeds.count).map_err(Failure::Usage)?;
    set_seeds(&mut trials, Some(seeds));
    // Files are created before the runs, so that an error costs no time.
    let page = run.report.as_deref().map(Draft::create).transpose()?;
    run.figures.dir().map(create_dir).transpose()?;
    remark(
        arguments,
        &format!(
            "{} mechanisms, each paired with each: {} runs of {} clients",
            mechanisms.len(),
            runs(&trials),
            scenario.clients.count
        ),
    );
    let start = Instant::now();
    let conducted = conduct(arguments, &trials, References::of(&trials), None)?;
    let matrix = Matrix::of(&conducted.results);
    let took = start.elapsed().as_secs_f64();

    let written = write_report(arguments, page, Some(&run.figures), &conducted, || Report {
        groups: CellGroup::by_conditions(matrix.alone.clone()),
        coexistence: Some(matrix.clone()),
        ..report(&scenario.title, &scenario.summary, &conducted)
    });
    // The table is printed even if the report cannot be written.
    let printed = print(&matrix, run.format, &conducted);
    written?;
    printed?;
    let made = conducted.results.iter().flat_map(|result| &result.runs);
    let events = made.map(|run| run.events).sum::<u64>() as f64 / 1e6;
    remark(arguments, &format!("{} runs, {events:.0} million events, {took:.1} s", matrix.runs));
    conducted.end()
}

/// Prints the matrix of pairs, or its rows as csv or json.
fn print(matrix: &Matrix, format: OutputFormat, conducted: &Conducted) -> io::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    match format.lines() {
        None => {
            out.write_all(matrix.table().as_bytes())?;
            if let Some(note) = conducted.note() {
                writeln!(out, "\n{note}")?;
            }
        }
        Some(lines) => matrix.rows(COMMIT).write(&mut out, lines)?,
    }
    out.flush()
}
