//! `coapace run`.

use std::io;
use std::path::PathBuf;
use std::thread;

use coapace_lab::experiment::Trial;
use coapace_lab::grid::{Grid, PlanError};
use coapace_lab::papers::References;
use coapace_report::write_film_gif;
use coapace_run::capture;
use coapace_scenario::File;

#[cfg(emulation)]
use super::live::conduct_live;
use super::output::{Conducted, RowOutput, conduct, create_dir, print_table, report, write_report};
use super::pairs;
#[cfg(feature = "parquet")]
use super::sweep;
use crate::arguments::{Arguments, OutputFormat, RunArguments};
use crate::draft::{Draft, need_a_file_each};
use crate::shown::remark;
use crate::{Failure, interrupt};

pub(crate) fn run(arguments: &Arguments, run: &RunArguments) -> Result<(), Failure> {
    if run.pairs {
        return pairs::run(arguments, run);
    }
    #[cfg(feature = "parquet")]
    if let Some(to) = &run.to {
        return sweep::run(arguments, run, to);
    }
    if run.each && run.format == OutputFormat::Table {
        return Err(Failure::Usage("--each needs --format csv or --format json".to_owned()));
    }
    let files = [&run.report, &run.film, &run.pcap, &run.trace].map(Option::as_deref);
    need_a_file_each("--report, --film, --pcap and --trace", &files)?;
    let seeds = run.seeds.map(|seeds| (seeds.first, seeds.count));
    let trials = Grid::new(&run.scenario, &run.set)?.trials(&run.mechanism, seeds)?;
    if run.film.is_some() && trials.first().is_some_and(|first| first.scenario.network.mesh.is_none()) {
        return Err(Failure::Usage("--film needs a scenario with a mesh".to_owned()));
    }
    // Files are opened first, so that an error costs no time.
    let draft = |path: &Option<PathBuf>| path.as_deref().map(Draft::create).transpose();
    let (page, film) = (draft(&run.report)?, draft(&run.film)?);
    let (pcap, trace) = (draft(&run.pcap)?, draft(&run.trace)?);
    run.figures.dir().map(create_dir).transpose()?;
    let Some(first) = trials.first() else { return Ok(()) };
    // The captured run is made apart: writing its packets would slow the others.
    capture(arguments, first, pcap, trace)?;
    let references = References::of(&trials);
    // If rows are the only output, a closed pipe ends the runs. Other files would still be wanted.
    let is_alone = page.is_none() && film.is_none() && run.figures.dir().is_none();
    let rows = run.format.lines().map(|lines| RowOutput { lines, each: run.each, is_alone });
    #[cfg(emulation)]
    let live = run
        .live
        .live
        .then(|| conduct_live(arguments, &trials, &references, 0, &run.live, &[run.live.other()], rows));
    #[cfg(not(emulation))]
    let live = None;
    let conducted = live.unwrap_or_else(|| conduct(arguments, &trials, references, rows))?;
    let File { title, summary, .. } = &**first.scenario;
    let filmed = film.map_or(Ok(()), |file| write_film(arguments, file, title, &conducted));
    // All outputs are written before the first error is returned, because the runs took the time.
    let written =
        write_report(arguments, page, Some(&run.figures), &conducted, || report(title, summary, &conducted));
    let printed = if run.format == OutputFormat::Table { print_table(&conducted) } else { Ok(()) };
    filmed.and(written)?;
    printed?;
    conducted.tell_unanswered(arguments);
    conducted.end()
}

/// Writes the animation of the first run.
fn write_film(
    arguments: &Arguments,
    draft: Draft,
    title: &str,
    conducted: &Conducted,
) -> Result<(), Failure> {
    let filmed = conducted.results.first().and_then(|result| Some((result, result.first_run()?)));
    let Some((mechanism, film)) =
        filmed.and_then(|(result, run)| Some((result.cell.label(), run.film.as_deref()?)))
    else {
        return Ok(());
    };
    let title = format!("{title}: {mechanism}");
    let path = draft.write(true, |out| write_film_gif(film, &title, out))?;
    remark(arguments, &format!("film: {}", path.display()));
    Ok(())
}

/// Writes the packets and events of the first run to the requested files.
fn capture(
    arguments: &Arguments,
    first: &Trial,
    pcap: Option<Draft>,
    trace: Option<Draft>,
) -> Result<(), Failure> {
    if pcap.is_none() && trace.is_none() {
        return Ok(());
    }
    let named = [&pcap, &trace].into_iter().flatten().map(Draft::name).collect::<Vec<_>>().join(" or ");
    let failed = |error: io::Error| Failure::Io(format!("cannot write {named}"), error);
    let writer = |file: &Option<Draft>| file.as_ref().map(Draft::writer).transpose();
    let (pcap_out, trace_out) = (writer(&pcap)?, writer(&trace)?);
    let Trial { scenario, contender, first_seed, .. } = first.clone();
    let message = format!("captured: {}, seed {first_seed}", contender.label);
    let write = move || capture::write(&scenario, &contender, first_seed, pcap_out, trace_out);
    // A run cannot be stopped, so an interruption leaves its thread behind.
    let thread = thread::Builder::new().spawn(write).map_err(failed)?;
    let Some(written) = interrupt::wait(thread, interrupt::watch()) else {
        return Err(Failure::Interrupted(
            "interrupted before the capture was complete: nothing is written".to_owned(),
        ));
    };
    written.unwrap_or_else(|panic| std::panic::resume_unwind(panic)).map_err(failed)?;
    // A file gets its name only when it is whole.
    for file in [pcap, trace].into_iter().flatten() {
        file.put(true)?;
    }
    remark(arguments, &message);
    Ok(())
}

impl From<PlanError> for Failure {
    fn from(error: PlanError) -> Self {
        match error {
            PlanError::Scenario(error) => error.into(),
            PlanError::Usage(message) => Self::Usage(message),
        }
    }
}
