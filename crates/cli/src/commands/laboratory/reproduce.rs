//! `coapace reproduce`.

use std::cell::LazyCell;
use std::io::{self, Write};

use coapace_lab::papers::{Paper, PaperSource};
use coapace_report::Report;
use coapace_run::contender::Contender;

use super::artifact::Artifact;
#[cfg(emulation)]
use super::live::conduct_live;
use super::output::{
    Conducted, RowOutput, command_line, conduct, create_dir, print_orders, print_table, report, set_seeds,
    write_report,
};
#[cfg(feature = "parquet")]
use super::repeat::repeat;
use super::sensitivity::sensitivity;
use crate::Failure;
use crate::arguments::{Arguments, OutputFormat, Reproduce};
use crate::draft::{Draft, need_a_file_each};
use crate::shown::remark;

pub(crate) fn reproduce(arguments: &Arguments, reproduce: &Reproduce) -> Result<(), Failure> {
    #[cfg(feature = "parquet")]
    if let Some(folder) = &reproduce.check {
        return repeat(arguments, folder);
    }
    let paper = Paper::named(reproduce.paper.as_deref().unwrap_or_default()).map_err(Failure::Usage)?;
    if reproduce.orders && reproduce.format == OutputFormat::Table {
        return Err(Failure::Usage("--orders needs --format csv or --format json".to_owned()));
    }
    if reproduce.each && (reproduce.format == OutputFormat::Table || reproduce.orders) {
        return Err(Failure::Usage(
            "--each needs --format csv or --format json, without --orders".to_owned(),
        ));
    }
    let files = [&reproduce.report, &reproduce.markdown].map(Option::as_deref);
    need_a_file_each("--report and --markdown", &files)?;
    if reproduce.sensitivity {
        return sensitivity(arguments, reproduce, paper);
    }
    let source = paper.source().map_err(Failure::Input)?;
    #[cfg(emulation)]
    let is_live = reproduce.live.live;
    #[cfg(not(emulation))]
    let is_live = false;
    let trials = if is_live { Paper::live_trials } else { Paper::trials };
    let others = others(&reproduce.mechanism).map_err(Failure::Usage)?;
    let (mut trials, references) = trials(paper, reproduce.quick, &others).map_err(Failure::Usage)?;
    set_seeds(&mut trials, reproduce.seeds);
    let quick = (reproduce.quick && !is_live).then(|| left_out(paper)).transpose()?;
    let page = reproduce.report.as_deref().map(Draft::create).transpose()?;
    let markdown = reproduce.markdown.as_deref().map(Draft::create).transpose()?;
    reproduce.figures.dir().map(create_dir).transpose()?;
    let mut artifact = Artifact::asked(reproduce)?;
    let values = references.all_published().map(|published| published.values.len()).sum::<usize>();
    let orders = references.all_published().map(|published| published.orders.len()).sum::<usize>();
    remark(arguments, &source.source);
    for (count, what) in [(values, "values"), (orders, "orders")].iter().filter(|(count, _)| *count > 0) {
        remark(arguments, &format!("{count} published {what}: {}", source.results));
    }
    if let Some(quick) = &quick {
        remark(arguments, quick);
    }

    let is_alone =
        page.is_none() && markdown.is_none() && artifact.is_none() && reproduce.figures.dir().is_none();
    let rows = reproduce.format.lines().filter(|_| !reproduce.orders);
    let rows = rows.map(|lines| RowOutput { lines, each: reproduce.each, is_alone });
    #[cfg(emulation)]
    let live = is_live.then(|| {
        let servers = [vec![None], reproduce.live.other().into_iter().map(Some).collect()].concat();
        // A median over few seeds is uncertain before a small buffer, and more are simulated in no time.
        let seeds = trials.iter().map(|trial| trial.scenario.defaults.seeds).max().unwrap_or(0);
        conduct_live(arguments, &trials, &references, seeds, &reproduce.live, &servers, rows)
    });
    #[cfg(not(emulation))]
    let live = None;
    let mut conducted = live.unwrap_or_else(|| conduct(arguments, &trials, references, rows))?;
    let paged = markdown.map_or(Ok(()), |file| {
        let page = paper
            .markdown(&command_line(), &conducted.results, &conducted.references)
            .map_err(Failure::Input)?;
        let path = file.write(conducted.is_complete(), |out| out.write_all(page.as_bytes()))?;
        remark(arguments, &format!("page: {}", path.display()));
        Ok(())
    });
    // Before the results are sorted below, because an artefact has them in the sequence of the trials.
    let kept = artifact
        .as_mut()
        .filter(|_| conducted.is_complete())
        .map_or(Ok(()), |artifact| artifact.add_results(paper, &trials, &conducted));
    if !is_live {
        conducted.references.sort_worst_first(&mut conducted.results);
    }
    // The report is made only if a part of it is written.
    let report = LazyCell::new(|| paper_report(&source, quick.as_deref(), &conducted));
    let written = write_report(arguments, page, Some(&reproduce.figures), &conducted, || &*report);
    let kept = kept.and_then(|()| {
        artifact
            .map_or(Ok(()), |artifact| artifact.complete(arguments, reproduce, &source, &report, &conducted))
    });
    let printed = print(reproduce, paper, quick.as_deref(), is_live, &conducted);
    // The summary goes to people, wherever the rows for programs go.
    if !is_live && reproduce.format != OutputFormat::Table {
        remark(arguments, &paper.summary(&conducted.results, &conducted.references));
    }
    paged.and(written).and(kept)?;
    printed?;
    conducted.end()
}

/// Prints the table and the summary, or the published rankings as csv or json. Rows of results were printed during the runs.
fn print(
    reproduce: &Reproduce,
    paper: &Paper,
    quick: Option<&str>,
    is_live: bool,
    conducted: &Conducted,
) -> io::Result<()> {
    if reproduce.orders {
        return print_orders(conducted, reproduce.format);
    }
    if reproduce.format != OutputFormat::Table {
        return Ok(());
    }
    print_table(conducted)?;
    if is_live {
        // The table has live values beside simulated and published ones already.
        return Ok(());
    }
    let quick = quick.map_or_else(String::new, |quick| format!("{quick}\n"));
    writeln!(io::stdout().lock(), "\n{quick}{}", paper.summary(&conducted.results, &conducted.references))
}

/// Returns the report of a paper. `quick` describes how a quick reproduction differs.
pub(super) fn paper_report(source: &PaperSource, quick: Option<&str>, conducted: &Conducted) -> Report {
    let subtitle: Vec<_> = [Some(source.source.as_str()), quick].into_iter().flatten().collect();
    report(&source.title, &subtitle.join("; "), conducted)
}

/// Returns a line that describes how a quick reproduction differs from the full one.
pub(super) fn left_out(paper: &Paper) -> Result<String, Failure> {
    paper.quick().map(|less| format!("quick: {less}")).map_err(Failure::Input)
}

/// Returns the mechanisms to run beside the paper's.
pub(super) fn others(labels: &[String]) -> Result<Vec<Contender>, String> {
    labels.iter().map(|label| Contender::parse(label)).collect()
}
