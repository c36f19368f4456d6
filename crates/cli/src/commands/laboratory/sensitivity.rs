//! `coapace reproduce --sensitivity`.

use std::io::{self, BufWriter, Write};

use coapace_lab::experiment::runs;
use coapace_lab::papers::{Paper, References, Sensitivity};
use coapace_report::Report;

use super::output::{conduct, report, set_seeds, write_report};
use crate::arguments::{Arguments, OutputFormat, Reproduce};
use crate::draft::Draft;
use crate::shown::remark;
use crate::{COMMIT, Failure};

pub(super) fn sensitivity(
    arguments: &Arguments,
    reproduce: &Reproduce,
    paper: &Paper,
) -> Result<(), Failure> {
    let source = paper.source().map_err(Failure::Input)?;
    let mut plan = paper.sensitivity(reproduce.quick).map_err(Failure::Input)?;
    set_seeds(&mut plan.trials, reproduce.seeds);
    let page = reproduce.report.as_deref().map(Draft::create).transpose()?;
    remark(arguments, &source.source);
    remark(
        arguments,
        &format!("{} variants of the paper's conditions: {} runs", plan.variants(), runs(&plan.trials)),
    );
    let conducted = conduct(arguments, &plan.trials, References::default(), None)?;
    if !conducted.is_complete() {
        // A variant that lacks runs cannot be compared with the others.
        return conducted.end();
    }
    let sensitivity = plan.judge(&conducted.results);
    let written = write_report(arguments, page, None, &conducted, || Report {
        groups: Vec::new(),
        sensitivity: Some(sensitivity.clone()),
        ..report(&source.title, &source.source, &conducted)
    });
    // The table is printed even if the report cannot be written.
    let printed = print(&sensitivity, reproduce.format, paper.key);
    written?;
    printed?;
    conducted.end()
}

/// Prints the table, or its rows as csv or json.
fn print(sensitivity: &Sensitivity, format: OutputFormat, paper: &str) -> io::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    match format.lines() {
        None => out.write_all(sensitivity.table().as_bytes())?,
        Some(lines) => sensitivity.write(&mut out, lines, COMMIT, paper)?,
    }
    out.flush()
}
