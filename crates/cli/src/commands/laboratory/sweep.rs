//! `coapace run --to`.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use coapace_dataset::sweep::{self, Plan, SweepDirectory};
use coapace_lab::grid::conditions;
use coapace_scenario::Source;

use crate::arguments::{Arguments, RunArguments};
use crate::shown::remark;
use crate::{Failure, interrupt, progress};

/// Makes the runs that the dataset in the directory `to` lacks.
pub(super) fn run(arguments: &Arguments, run: &RunArguments, to: &Path) -> Result<(), Failure> {
    let source = Source::find(&run.scenario)?;
    let conditions = conditions(&run.set).map_err(Failure::Usage)?;
    let seeds = run.seeds.map(|seeds| (seeds.first, seeds.count));
    let begin = Instant::now();
    // Planning checks every scenario, so a mistake shows before the directory is made.
    let plan = Arc::new(Plan::new(source, conditions, &run.mechanism, seeds)?);
    let planned = begin.elapsed().as_secs_f64();
    let (folder, to) = (to, to.display());
    let named = |error: io::Error| Failure::Input(format!("{to}: {error}"));
    let directory = SweepDirectory::open(folder, &plan, run.shard).map_err(named)?;
    let missing = directory.missing(&plan);
    // Until here nothing is lost by an end at once.
    let stop = interrupt::watch();
    let (asked, reused) = (missing.len(), directory.units(&plan) - missing.len());
    let bar = progress::bar(asked, arguments.quiet);
    if reused > 0 {
        bar.set_message(format!("{reused} were there"));
    }
    let start = Instant::now();
    let made = sweep::conduct(&plan, &directory, missing, arguments.jobs(), stop, || Ok(()), &mut |made| {
        bar.set_position(made as u64);
    });
    bar.finish_and_clear();
    let made = made.map_err(named)?;
    // The runs so far are in the directory, and the same command goes on after them.
    if made < asked {
        return Err(Failure::Interrupted(format!(
            "incomplete: interrupted after {made} of {asked} runs, which are in {to}; the same command makes the others"
        )));
    }
    let shard = run.shard.map_or_else(String::new, |shard| format!(" of shard {shard}"));
    let took = start.elapsed().as_secs_f64();
    remark(
        arguments,
        &format!(
            "{made} runs{shard} in {took:.1} s, planned in {planned:.1} s; {reused} runs of earlier calls are reused: {to}"
        ),
    );
    remark(arguments, &format!("to read them: polars.scan_parquet(\"{to}/part-*.parquet\")"));
    Ok(())
}
