//! `coapace rank`.

use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::Instant;

use coapace_lab::experiment::runs;
use coapace_lab::rank::{Ranking, Suite};
use coapace_report::Report;

use super::output::{COMMIT, conduct, remark, report, set_seeds, write_report};
use crate::Failure;
use crate::arguments::{Arguments, Rank};
use crate::draft::Draft;

pub(crate) fn rank(arguments: &Arguments, rank: &Rank) -> Result<(), Failure> {
    let suite = Suite::load(&rank.suite, &rank.set).map_err(|error| {
        // A file that is there and cannot be used is no wrong usage.
        let is_file = rank.suite.iter().any(|word| Path::new(word).is_file());
        if is_file { Failure::Input(error) } else { Failure::Usage(error) }
    })?;
    let contenders = Ranking::contenders(&rank.mechanism).map_err(Failure::Usage)?;
    let mut trials = suite.trials(&contenders).map_err(Failure::Usage)?;
    set_seeds(&mut trials, rank.seeds);
    let page = rank.report.as_deref().map(Draft::create).transpose()?;
    let (cells, mechanisms) = (suite.cells.len(), contenders.len());
    let cells = if cells == 1 { "1 cell".to_owned() } else { format!("{cells} cells") };
    remark(arguments, &format!("{mechanisms} mechanisms over {cells}: {} runs", runs(&trials)));
    let start = Instant::now();
    let mut conducted = conduct(arguments, &trials, None)?;
    let results = std::mem::take(&mut conducted.results);
    let ranking = Ranking::of(&suite, results);
    let took = start.elapsed().as_secs_f64();

    if page.is_some() {
        let report =
            Report { ranking: Some(ranking.clone()), ..report(&suite.title, &suite.summary, &conducted) };
        write_report(arguments, &report, page, None, &conducted)?;
    }
    let mut out = BufWriter::new(io::stdout().lock());
    match rank.format.lines() {
        None => {
            if let Some(advice) = ranking.advice() {
                writeln!(out, "{advice}\n")?;
            }
            out.write_all(ranking.table().as_bytes())?;
            if let Some(note) = conducted.note() {
                writeln!(out, "\n{note}")?;
            }
        }
        Some(lines) => ranking.rows(COMMIT).write(&mut out, lines)?,
    }
    out.flush()?;
    remark(arguments, &format!("{} runs, {took:.1} s", ranking.runs()));
    conducted.end()
}
