//! Results to standard output and into files.

use std::fs::File;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::Path;

use coapace_lab::experiment::{Trial, conduct, runs};
use coapace_lab::report::{Group, Report};
use coapace_lab::results::{
    CellResult, terminal_table, write_cells_csv, write_cells_json_lines, write_runs_csv,
    write_runs_json_lines, write_verdicts_csv, write_verdicts_json_lines,
};

use crate::arguments::{Arguments, Format};
use crate::{Failure, progress};

/// The commit this binary is built from.
pub(crate) const COMMIT: &str = env!("COAPACE_COMMIT");

/// Runs all trials with a progress bar.
pub(crate) fn conduct_with_progress(arguments: &Arguments, trials: &[Trial]) -> Vec<CellResult> {
    let bar = progress::bar(runs(trials), arguments.quiet);
    let results = conduct(trials, jobs(arguments), &|| bar.inc(1));
    bar.finish_and_clear();
    results
}

/// Threads to run on, 0 for one a core.
pub(crate) fn jobs(arguments: &Arguments) -> usize {
    arguments.jobs.map_or(0, usize::from)
}

/// Prints results; `each` run or each cell.
pub(crate) fn print(results: &[CellResult], format: Format, each: bool) -> Result<(), Failure> {
    let mut out = BufWriter::new(io::stdout().lock());
    match (format, each) {
        (Format::Table, _) => {
            // comfy-table asks the terminal itself; a pipe has no width and gets every column.
            let width = if io::stdout().is_terminal() { None } else { Some(u16::MAX) };
            writeln!(out, "{}", terminal_table(results, width))?;
        }
        (Format::Csv, false) => write_cells_csv(&mut out, COMMIT, results)?,
        (Format::Csv, true) => write_runs_csv(&mut out, COMMIT, results)?,
        (Format::Json, false) => write_cells_json_lines(&mut out, COMMIT, results)?,
        (Format::Json, true) => write_runs_json_lines(&mut out, COMMIT, results)?,
    }
    Ok(out.flush()?)
}

/// Prints what became of published orders, as rows for programs.
pub(crate) fn print_orders(results: &[CellResult], format: Format) -> io::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    match format {
        Format::Json => write_verdicts_json_lines(&mut out, COMMIT, results)?,
        Format::Csv | Format::Table => write_verdicts_csv(&mut out, COMMIT, results)?,
    }
    out.flush()
}

/// Writes the report on results, by groups of equal conditions.
pub(crate) fn write_report(
    file: &mut impl Write,
    title: &str,
    subtitle: &str,
    results: &[CellResult],
) -> io::Result<()> {
    let report = Report {
        title: title.to_owned(),
        subtitle: subtitle.to_owned(),
        command: command_line(),
        commit: COMMIT.to_owned(),
        groups: Group::by_conditions(results.to_vec()),
        coexistence: None,
    };
    report.write_html(file)
}

/// How this program was called.
pub(crate) fn command_line() -> String {
    let words = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    ["coapace".to_owned()].into_iter().chain(words).collect::<Vec<_>>().join(" ")
}

/// Opens a file to write, before the work that fills it: a path that cannot be written costs no time then.
pub(crate) fn create(path: &Path) -> Result<BufWriter<File>, Failure> {
    File::create(path)
        .map(BufWriter::new)
        .map_err(|error| Failure::Io(format!("cannot write {}", path.display()), error))
}

/// Says something that is no result.
pub(crate) fn remark(arguments: &Arguments, text: &str) {
    if !arguments.quiet {
        // If nobody can hear it, nothing is lost.
        let _ = writeln!(io::stderr(), "{text}");
    }
}
