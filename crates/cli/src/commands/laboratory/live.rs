//! Live runs beside simulated ones.

mod conducting;
mod estimate;
mod journal;

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use coapace_lab::experiment::{Trial, conduct_until, runs};
use coapace_lab::output::write_rows;
use coapace_lab::papers::References;
use coapace_lab::results::CellResult;
use coapace_run::contender::ContenderKind;
use coapace_wire::emulation::take_privileges;
use coapace_wire::live::{PeerCommand, fits};

use self::conducting::{Conducting, LiveResults, conduct};
use self::estimate::{DurationEstimate, estimate};
use self::journal::LiveJournal;
use super::output::{Conducted, RowOutput};
use crate::arguments::{Arguments, LiveOptions};
use crate::process::raise_descriptor_limit;
use crate::shown::remark;
use crate::{COMMIT, Failure, interrupt, progress};

/// The time between two updates of the progress bar.
const STEP: Duration = Duration::from_millis(250);

/// Simulates all trials, with at least `simulated_seeds` seeds, and then runs them live with each of the `peers`;
/// `None` for our own server and clients. Prints all rows at the end. Ctrl-C ends the live runs, and finished runs are
/// printed.
pub(super) fn conduct_live(
    arguments: &Arguments,
    trials: &[Trial],
    references: &References,
    simulated_seeds: u32,
    options: &LiveOptions,
    peers: &[Option<PeerCommand>],
    rows: Option<RowOutput>,
) -> Result<Conducted, Failure> {
    // All trials are checked before the first run, so that a mistake costs no time.
    for trial in trials {
        fits(&trial.scenario, &trial.contender).map_err(Failure::Usage)?;
        for peer in peers.iter().flatten() {
            peer.fits(&trial.scenario, &trial.contender).map_err(Failure::Usage)?;
        }
    }
    if trials.iter().any(|trial| trial.contender.kind == ContenderKind::Tcp) {
        // TCP runs in network namespaces. The right to make them has to be taken before any thread starts. Without it the runs over
        // TCP fail and say so, and the others are made.
        let _ = take_privileges();
    }
    let stop = interrupt::watch();
    let journal = options.journal.as_deref().map(|path| {
        LiveJournal::open(path, COMMIT)
            .map_err(|error| Failure::Input(format!("{}: {error}", path.display())))
    });
    let journal = journal.transpose()?;
    raise_descriptor_limit();
    // Live runs are few because they take real time. Simulated ones are cheap, and more of them narrow the interval.
    let more = |trial: &Trial| Trial { seeds: trial.seeds.max(simulated_seeds), ..trial.clone() };
    let to_simulate: Vec<Trial> = trials.iter().map(more).collect();
    // The simulation comes first: its durations say how long the live runs will take.
    let simulated = simulate(arguments, &to_simulate, stop);
    let planned = runs(&to_simulate) + runs(trials) * peers.len();
    let mut outcome = LiveResults::default();
    if !stop.load(Ordering::Relaxed) {
        outcome = run(arguments, trials, options, peers, &simulated, journal);
    }
    let results = interleaved(simulated, &outcome.cells, trials.len());
    let printed = rows.map_or(Ok(()), |RowOutput { lines, each, .. }| {
        write_rows(io::stdout().lock(), lines, each, COMMIT, &results, references)
    });
    // A run that failed is missing.
    let made: usize = results.iter().map(|result| result.runs.len()).sum();
    let mut failures = outcome.failures.into_iter();
    // If every run was made, a failure is about the journal, which is a remark. Otherwise the first one ends the command.
    let failed = if made < planned { failures.next() } else { None };
    for line in outcome.health.words().into_iter().chain(failures) {
        remark(arguments, &line);
    }
    let failure = failed.map(Failure::Network).or(printed.err().map(Failure::from));
    Ok(Conducted::of(results, references.clone(), planned, failure))
}

/// Simulates the trials.
fn simulate(arguments: &Arguments, trials: &[Trial], stop: &AtomicBool) -> Vec<CellResult> {
    let bar = progress::bar(runs(trials), arguments.quiet);
    bar.set_message("simulated");
    let results = conduct_until(trials, arguments.jobs(), stop, &mut |_| bar.inc(1));
    bar.finish_and_clear();
    results
}

/// Makes the live runs.
fn run(
    arguments: &Arguments,
    trials: &[Trial],
    options: &LiveOptions,
    peers: &[Option<PeerCommand>],
    simulated: &[CellResult],
    journal: Option<LiveJournal>,
) -> LiveResults {
    let jobs = usize::from(options.live_jobs);
    let once = estimate(trials, simulated);
    // All trials run once with each peer.
    let all = peers.iter().skip(1).fold(once.clone(), |all, _| all.and(once.clone()));
    let time = all.all(jobs);
    let known = journal.as_ref().map_or(0, LiveJournal::runs);
    let before = if known > 0 { format!("; {known} runs were made before") } else { String::new() };
    remark(
        arguments,
        &format!("live: {} runs, {jobs} at a time, about {}{before}", all.count(), words(time)),
    );
    let bar = progress::milliseconds(time, arguments.quiet);
    let conducting = Conducting {
        trials: peers.iter().flat_map(|_| trials).cloned().collect(),
        peers: peers.iter().flat_map(|peer| trials.iter().map(|_| peer.clone())).collect(),
        estimate: all,
        jobs,
        journal,
        stop: interrupt::watch(),
    };
    // The bar moves with the time, because a live run may last for minutes and ends all at once.
    let (begun, is_over) = (Instant::now(), AtomicBool::new(false));
    let outcome = thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                bar.set_position(begun.elapsed().min(time).as_millis() as u64);
                thread::sleep(STEP);
            }
        });
        let (mut made, planned) = (0, conducting.estimate.count());
        let outcome = conduct(conducting, &mut || {
            made += 1;
            bar.set_message(format!("{made} of {planned} live runs"));
        });
        is_over.store(true, Ordering::Relaxed);
        outcome
    });
    bar.finish_and_clear();
    outcome
}

/// Puts the live cells of each trial after the simulated cell. Cells without runs are left out.
fn interleaved(simulated: Vec<CellResult>, live: &[CellResult], trials: usize) -> Vec<CellResult> {
    let mut all = Vec::new();
    for (place, cell) in simulated.into_iter().enumerate() {
        all.push(cell);
        all.extend(live.iter().skip(place).step_by(trials.max(1)).cloned());
    }
    all.retain(|result| !result.runs.is_empty());
    all
}

/// Returns a time in words, such as `90 s` or `12 min`.
fn words(time: Duration) -> String {
    let seconds = time.as_secs_f64();
    if seconds < 180.0 { format!("{seconds:.0} s") } else { format!("{:.0} min", (seconds / 60.0).ceil()) }
}
