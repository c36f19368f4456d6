//! Results to standard output and into files.

use std::borrow::Borrow;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::Path;
use std::sync::atomic::Ordering;

use coapace_lab::directory;
use coapace_lab::experiment::{Trial, cells, conduct_until, runs};
use coapace_lab::lists::listed;
use coapace_lab::output::{Look, RowFormat, Rows, order_rows, terminal_table};
use coapace_lab::papers::References;
use coapace_lab::results::CellResult;
use coapace_report::{CellGroup, Report};
use terminal_size::{Width, terminal_size_of};

use crate::arguments::{Arguments, FigureArguments, OutputFormat, Seeds};
use crate::draft::Draft;
use crate::shown::{counted, remark};
use crate::{COMMIT, Failure, interrupt, progress};

/// The results of an experiment, complete or interrupted.
pub(crate) struct Conducted {
    /// A cell (the runs of one mechanism under one condition) for each trial; if interrupted, only cells with runs.
    pub(crate) results: Vec<CellResult>,
    /// The published results and the bounds to compare with.
    pub(crate) references: References,
    made: usize,
    planned: usize,
    /// Whether any exchange was answered in any run.
    has_answers: bool,
    /// The reason why runs are missing or were not printed, other than an interruption.
    failure: Option<Failure>,
}

/// The output of rows as csv or json.
#[derive(Clone, Copy)]
pub(super) struct RowOutput {
    pub(super) lines: RowFormat,
    /// Whether each run has a row, instead of each cell.
    pub(super) each: bool,
    /// Whether rows are the only output. Then the runs stop when the reader of the rows closes its pipe.
    pub(super) is_alone: bool,
}

impl Conducted {
    /// Returns the results of an experiment of `planned` runs, without empty cells if runs are missing. `failure` is the reason
    /// why runs are missing or were not printed.
    pub(super) fn of(
        mut results: Vec<CellResult>,
        references: References,
        planned: usize,
        failure: Option<Failure>,
    ) -> Self {
        let made = results.iter().map(|result| result.runs.len()).sum();
        let has_answers = results.iter().any(CellResult::has_answers);
        // A complete experiment keeps its cells, even one without runs, so that rows match the trials.
        results.retain(|result| !result.runs.is_empty() || made == planned);
        Self { results, references, made, planned, has_answers, failure }
    }

    /// Returns whether all planned runs were made.
    pub(crate) fn is_complete(&self) -> bool {
        self.made == self.planned
    }

    /// Returns a line that says how many of the planned runs were made; `None` if all were.
    pub(crate) fn note(&self) -> Option<String> {
        let Self { made, planned, failure, .. } = self;
        let how = if failure.is_some() { "" } else { "interrupted after " };
        (!self.is_complete()).then(|| format!("incomplete: {how}{made} of {planned} runs"))
    }

    /// Ends the command. Fails if the experiment was interrupted, a run failed, rows were not printed, or no request was
    /// answered in any run, because such results show nothing about a mechanism.
    pub(crate) fn end(self) -> Result<(), Failure> {
        let interrupted = self.note().map(Failure::Interrupted);
        let unanswered = (self.made > 0 && !self.has_answers).then(|| {
            Failure::Network(format!(
                "no request was answered in {}: check the delays, losses and buffers of the network, MAX_RETRANSMIT, and the duration",
                if self.made == 1 { "the run".to_owned() } else { format!("any of {} runs", self.made) }
            ))
        });
        // The most specific reason comes first: a failed run explains missing runs, and missing runs missing answers.
        self.failure.or(interrupted).or(unanswered).map_or(Ok(()), Err)
    }

    /// Prints a remark that lists the cells in which no request was answered, unless this is true of all cells.
    pub(super) fn tell_unanswered(&self, arguments: &Arguments) {
        let silent: Vec<String> = self
            .results
            .iter()
            .filter(|result| !result.runs.is_empty() && !result.has_answers())
            .map(|result| {
                format!("{} with {}", result.cell.label(), counted(result.cell.clients as usize, "client"))
            })
            .collect();
        if !silent.is_empty() && silent.len() < self.results.len() {
            let names: Vec<&str> = silent.iter().map(String::as_str).collect();
            remark(arguments, &format!("no request was answered: {}", listed(&names, 3, "others")));
        }
    }
}

/// Runs all trials with a progress bar until they are complete or Ctrl-C comes. With `rows`, the rows of a cell are printed as
/// soon as this cell and all cells before it are complete. An interrupted experiment prints the rows of incomplete cells at its
/// end. If rows cannot be printed, the runs stop, unless results also go to files.
pub(crate) fn conduct(
    arguments: &Arguments,
    trials: &[Trial],
    references: References,
    rows: Option<RowOutput>,
) -> Result<Conducted, Failure> {
    let stop = interrupt::watch();
    let planned = runs(trials);
    let bar = progress::bar(planned, arguments.quiet);
    // If only rows are wanted and nobody reads them, the runs end. Otherwise files still take the results.
    let is_alone = rows.is_some_and(|rows| rows.is_alone);
    let rows = rows.map(|rows| Rows::new(&cells(trials), &references, rows.lines, rows.each, COMMIT));
    let mut out = io::stdout();
    let mut print = |lines: String| out.write_all(lines.as_bytes()).and_then(|()| out.flush());
    let mut written = rows.as_ref().map_or(Ok(()), |rows| print(rows.header()));
    // An interruption that has come already must not be overwritten.
    stop.fetch_or(is_alone && written.is_err(), Ordering::Relaxed);
    let mut printed = 0;
    let results = conduct_until(trials, arguments.jobs(), stop, &mut |results| {
        bar.inc(1);
        // Runs end in any order, and rows come in the order of the trials.
        let is_next = |printed: usize| {
            trials.get(printed).is_some_and(|trial| results[printed].runs.len() == trial.seeds as usize)
        };
        while written.is_ok() && is_next(printed) {
            if let Some(rows) = &rows {
                // The bar would be drawn into the rows.
                written = bar.suspend(|| print(rows.of(results, printed)));
                // Standard output may be closed: nobody reads further rows.
                stop.fetch_or(is_alone && written.is_err(), Ordering::Relaxed);
            }
            printed += 1;
        }
    });
    bar.finish_and_clear();
    if let Some(rows) = &rows {
        let incomplete = (printed..results.len()).filter(|&place| !results[place].runs.is_empty());
        written = written.and_then(|()| print(incomplete.map(|place| rows.of(&results, place)).collect()));
    }
    let mut conducted = Conducted::of(results, references, planned, None);
    if is_alone {
        written?;
    } else if conducted.is_complete() {
        // If the run was interrupted, that is reported in place of the write error.
        conducted.failure = written.err().map(Failure::from);
    }
    Ok(conducted)
}

/// Sets the seeds of all trials to the seeds on the command line, if given.
pub(super) fn set_seeds(trials: &mut [Trial], seeds: Option<Seeds>) {
    if let Some(seeds) = seeds {
        for trial in trials {
            (trial.seeds, trial.first_seed) = (seeds.count, seeds.first);
        }
    }
}

/// Prints the table of results.
pub(crate) fn print_table(conducted: &Conducted) -> io::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    // A pipe has no width and gets every column.
    writeln!(out, "{}", terminal_table(&conducted.results, &conducted.references, look()))?;
    if let Some(note) = conducted.note() {
        writeln!(out, "{note}")?;
    }
    out.flush()
}

/// Prints the verdict on each published ranking, as rows of csv or json.
pub(crate) fn print_orders(conducted: &Conducted, format: OutputFormat) -> io::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    let orders = order_rows(COMMIT, &conducted.results, &conducted.references);
    orders.write(&mut out, format.lines().unwrap_or(RowFormat::Csv))
}

/// Returns a report with the results, grouped by equal conditions.
pub(crate) fn report(title: &str, subtitle: &str, conducted: &Conducted) -> Report {
    Report {
        title: title.to_owned(),
        subtitle: noted(subtitle, conducted),
        command: command_line(),
        commit: COMMIT.to_owned(),
        groups: CellGroup::by_conditions(conducted.results.clone()),
        references: conducted.references.clone(),
        coexistence: None,
        sensitivity: None,
        ranking: None,
    }
}

/// Writes the page of a report and its charts, if asked for, and prints where they are. Charts of an incomplete experiment do
/// not replace older ones. Print the results before you return this error, so that a full disk does not lose them.
pub(crate) fn write_report<R: Borrow<Report>>(
    arguments: &Arguments,
    page: Option<Draft>,
    figures: Option<&FigureArguments>,
    conducted: &Conducted,
    report: impl FnOnce() -> R,
) -> Result<(), Failure> {
    let plates = figures.and_then(|figures| figures.dir().zip(Some(figures.plates())));
    if page.is_none() && plates.is_none() {
        return Ok(());
    }
    let made = report();
    let report = made.borrow();
    let paged = page.map_or(Ok(()), |file| {
        let path = file.write(conducted.is_complete(), |out| report.write_html(out))?;
        remark(arguments, &format!("report: {}", path.display()));
        Ok(())
    });
    if let Some((dir, plates)) = plates.filter(|_| conducted.is_complete()) {
        let charts = report.write_figures(dir, &plates).map_err(|error| Failure::cannot_write(dir, error))?;
        remark(
            arguments,
            &format!("figures: {charts} charts in {}, each as SVG, PDF and PNG", dir.display()),
        );
    }
    paged
}

/// Creates the directory for charts. This happens before the runs, so that an error costs no time.
pub(crate) fn create_dir(dir: &Path) -> Result<(), Failure> {
    directory::create(dir).map_err(|error| Failure::cannot_write(dir, error))
}

/// Returns the subtitle of a report, with a note if the experiment is incomplete.
pub(crate) fn noted(subtitle: &str, conducted: &Conducted) -> String {
    let parts = [Some(subtitle.to_owned()).filter(|it| !it.is_empty()), conducted.note()];
    parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// Returns the width and colours of standard output. A terminal has colours unless the environment has `NO_COLOR`
/// (no-color.org) or `TERM=dumb`.
pub(crate) fn look() -> Look {
    let stdout = io::stdout();
    if !stdout.is_terminal() {
        return Look::PLAIN;
    }
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let colours = !is_set("NO_COLOR") && std::env::var_os("TERM").is_none_or(|term| term != "dumb");
    let width =
        terminal_size_of(stdout).map(|(Width(width), _)| usize::from(width)).filter(|&width| width > 0);
    Look { width: width.unwrap_or(Look::PLAIN.width), colours }
}

/// Returns the command line of this process, as a shell reads it.
pub(crate) fn command_line() -> String {
    let words = crate::words().iter().map(|word| quoted(&word.to_string_lossy()));
    ["coapace".to_owned()].into_iter().chain(words).collect::<Vec<_>>().join(" ")
}

/// Returns a word in quotes if a shell would take it for anything else.
fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "-_./:=,+@%".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    // Within single quotes nothing has a meaning but the end of them.
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn a_word_with_blanks_or_quotes_is_quoted_for_the_shell() {
        assert_eq!(quoted("network.up.rate=60kbit/s"), "network.up.rate=60kbit/s");
        assert_eq!(quoted("duration=5 min"), "'duration=5 min'");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
    }
}
