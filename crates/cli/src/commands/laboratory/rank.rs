//! `coapace rank`.

use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::Instant;

use coapace_lab::experiment::runs;
use coapace_lab::output::wrapped;
use coapace_lab::papers::References;
use coapace_lab::rank::{Ranking, Suite};
use coapace_report::Report;

use super::output::{Conducted, conduct, look, report, set_seeds, write_report};
use crate::arguments::{Arguments, OutputFormat, Rank};
use crate::draft::Draft;
use crate::shown::{counted, remark};
use crate::{COMMIT, Failure};

pub(crate) fn rank(arguments: &Arguments, rank: &Rank) -> Result<(), Failure> {
    let suite = Suite::load(&rank.suite, &rank.set).map_err(|error| {
        // A file that is missing or cannot be used is not wrong usage.
        let is_path = |word: &String| Path::new(word).extension().is_some() || Path::new(word).exists();
        if rank.suite.iter().any(is_path) { Failure::Input(error) } else { Failure::Usage(error) }
    })?;
    let contenders = Ranking::contenders(&rank.mechanism).map_err(Failure::Usage)?;
    let mut trials = suite.trials(&contenders).map_err(Failure::Usage)?;
    set_seeds(&mut trials, rank.seeds);
    let page = rank.report.as_deref().map(Draft::create).transpose()?;
    let (cells, mechanisms) = (suite.cells.len(), contenders.len());
    let [mechanisms, cells, planned] = [(mechanisms, "mechanism"), (cells, "cell"), (runs(&trials), "run")]
        .map(|(n, what)| counted(n, what));
    remark(arguments, &format!("{mechanisms} over {cells}: {planned}"));
    let start = Instant::now();
    let mut conducted = conduct(arguments, &trials, References::default(), None)?;
    // The ranking owns the results: copies of thousands of runs would double the memory.
    let results = std::mem::take(&mut conducted.results);
    let ranking = Ranking::of(&suite, results);
    let took = start.elapsed().as_secs_f64();

    let written = write_report(arguments, page, None, &conducted, || Report {
        ranking: Some(ranking.clone()),
        ..report(&suite.title, &suite.summary, &conducted)
    });
    // The table is printed even if the report cannot be written.
    let printed = print(&ranking, rank.format, &conducted);
    written?;
    printed?;
    remark(arguments, &format!("{}, {took:.1} s", counted(ranking.runs(), "run")));
    conducted.end()
}

/// Prints the ranking, or its rows as csv or json.
fn print(ranking: &Ranking, format: OutputFormat, conducted: &Conducted) -> io::Result<()> {
    let mut out = BufWriter::new(io::stdout().lock());
    match format.lines() {
        None => {
            let look = look();
            if let Some(advice) = ranking.advice() {
                writeln!(out, "{}\n", wrapped(&advice, look.width))?;
            }
            out.write_all(ranking.table(look).as_bytes())?;
            if let Some(note) = conducted.note() {
                writeln!(out, "\n{note}")?;
            }
        }
        Some(lines) => ranking.rows(COMMIT).write(&mut out, lines)?,
    }
    out.flush()
}
