//! `coapace coexist`.

use std::io::{self, BufWriter, Write};
use std::sync::Arc;
use std::time::Instant;

use coapace_lab::coexistence::{Matrix, trials};
use coapace_lab::experiment::runs;
use coapace_report::{Group, Report};
use coapace_run::contender::Contender;
use coapace_scenario::Scenario;

use super::output::{COMMIT, Conducted, conduct, create_dir, remark, report, write_report};
use crate::Failure;
use crate::arguments::{Arguments, Coexist, Format};
use crate::draft::Draft;

pub(crate) fn coexist(arguments: &Arguments, coexist: &Coexist) -> Result<(), Failure> {
    let scenario = Arc::new(Scenario::load(&coexist.scenario, &coexist.set)?);
    let mechanisms = Contender::named(&coexist.mechanism).map_err(Failure::Usage)?;
    let mut trials = trials(&scenario, &mechanisms, coexist.seeds.count).map_err(Failure::Usage)?;
    for trial in &mut trials {
        trial.first_seed = coexist.seeds.first;
    }
    let page = coexist.report.as_deref().map(Draft::create).transpose()?;
    coexist.figures.dir().map(create_dir).transpose()?;
    remark(
        arguments,
        &format!(
            "{} mechanisms, each with each: {} runs of {} clients",
            mechanisms.len(),
            runs(&trials),
            scenario.clients.count
        ),
    );
    let start = Instant::now();
    let conducted = conduct(arguments, &trials, None)?;
    let matrix = Matrix::of(&conducted.results);
    let took = start.elapsed().as_secs_f64();

    let written = write_report(arguments, page, Some(&coexist.figures), &conducted, || Report {
        groups: Group::by_conditions(matrix.alone.clone()),
        coexistence: Some(matrix.clone()),
        ..report(&scenario.title, &scenario.summary, &conducted)
    });
    let printed = print(&matrix, coexist.format, &conducted);
    written?;
    printed?;
    let made = conducted.results.iter().flat_map(|result| &result.runs);
    let events = made.map(|run| run.events).sum::<u64>() as f64 / 1e6;
    remark(arguments, &format!("{} runs, {events:.0} million events, {took:.1} s", matrix.runs));
    conducted.end()
}

/// Prints the matrix, or its rows for programs.
fn print(matrix: &Matrix, format: Format, conducted: &Conducted) -> io::Result<()> {
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
