//! `coapace coexist`.

use std::io::{self, BufWriter, Write};
use std::sync::Arc;
use std::time::Instant;

use coapace_lab::coexistence::{Matrix, trials, write_csv, write_json_lines};
use coapace_lab::contender::Contender;
use coapace_lab::experiment::runs;
use coapace_lab::report::{Group, Report};
use coapace_lab::scenario::Scenario;

use super::output::{COMMIT, command_line, conduct_with_progress, create, remark};
use crate::Failure;
use crate::arguments::{Arguments, Coexist, Format};

pub(crate) fn coexist(arguments: &Arguments, coexist: &Coexist) -> Result<(), Failure> {
    let scenario = Arc::new(Scenario::load(&coexist.scenario, &coexist.set)?);
    let mechanisms = mechanisms(&coexist.mechanism).map_err(Failure::Usage)?;
    let trials = trials(&scenario, &mechanisms, coexist.seeds).map_err(Failure::Usage)?;
    let mut report = coexist.report.as_deref().map(create).transpose()?;
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
    let matrix = Matrix::of(&conduct_with_progress(arguments, &trials));
    let took = start.elapsed().as_secs_f64();

    if let (Some(file), Some(path)) = (&mut report, &coexist.report) {
        let page = Report {
            title: scenario.title.clone(),
            subtitle: scenario.summary.clone(),
            command: command_line(),
            commit: COMMIT.to_owned(),
            groups: Group::by_conditions(matrix.alone().to_vec()),
            coexistence: Some(matrix.clone()),
        };
        page.write_html(file)
            .map_err(|error| Failure::Io(format!("cannot write {}", path.display()), error))?;
        remark(arguments, &format!("report: {}", path.display()));
    }
    let mut out = BufWriter::new(io::stdout().lock());
    match coexist.format {
        Format::Table => out.write_all(matrix.table().as_bytes())?,
        Format::Csv => write_csv(&mut out, COMMIT, &matrix)?,
        Format::Json => write_json_lines(&mut out, COMMIT, &matrix)?,
    }
    out.flush()?;
    let events = matrix.events() as f64 / 1e6;
    remark(arguments, &format!("{} runs, {events:.0} million events, {took:.1} s", matrix.runs()));
    Ok(())
}

/// Those named, or every mechanism over UDP.
fn mechanisms(labels: &[String]) -> Result<Vec<Contender>, String> {
    if labels.is_empty() {
        return Ok(Contender::all().into_iter().filter(|contender| contender.only().is_some()).collect());
    }
    labels.iter().map(|label| Contender::parse(label)).collect()
}
