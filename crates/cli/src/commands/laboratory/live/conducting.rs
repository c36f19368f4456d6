//! Makes many live runs, several at a time.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use coapace_lab::experiment::{Trial, conduct_by};
use coapace_lab::results::{Cell, CellResult, Mode};
use coapace_run::Observe;
use coapace_run::measured::RunResult;

use coapace_wire::live::{Health, Live, LiveError, PeerCommand, run};

use super::{DurationEstimate, LiveJournal};

/// A live run is given up after this many times its estimated duration, plus [`GRACE`].
const TIMES: u32 = 5;

/// The time added to the estimate times [`TIMES`]. Behind a lossy link one client in backoff may take minutes more than
/// in the simulation.
const GRACE: Duration = Duration::from_mins(5);

/// The longest wait for interrupted runs to end their servers and networks.
const FAREWELL: Duration = Duration::from_secs(5);

/// The live runs to be made, and how to make them.
#[derive(Debug)]
pub(crate) struct Conducting {
    /// The trials.
    pub(crate) trials: Vec<Trial>,
    /// For each trial, the command of another stack's server or client; `None` to use our own.
    pub(crate) peers: Vec<Option<PeerCommand>>,
    /// The estimated duration of each run.
    pub(crate) estimate: DurationEstimate,
    /// The number of runs at a time.
    pub(crate) jobs: usize,
    /// The journal with earlier runs, to which new ones are added.
    pub(crate) journal: Option<LiveJournal>,
    /// Ends all runs when it becomes true.
    pub(crate) stop: &'static AtomicBool,
}

/// The results of live runs.
#[derive(Debug, Default)]
pub(crate) struct LiveResults {
    /// The results, a cell for each trial.
    pub(crate) cells: Vec<CellResult>,
    /// How late the timers and packets of all runs were.
    pub(crate) health: Health,
    /// A line for each run that failed or could not be written to the journal.
    pub(crate) failures: Vec<String>,
}

/// The state that the threads of live runs share.
struct LiveState {
    peers: Vec<Option<PeerCommand>>,
    cells: Vec<Cell>,
    estimate: DurationEstimate,
    journal: Mutex<Option<LiveJournal>>,
    health: Mutex<Health>,
    failures: Mutex<Vec<String>>,
    /// The runs in progress.
    under_way: AtomicU32,
    stop: &'static AtomicBool,
}

/// Makes all live runs, and calls `ran` after each.
pub(crate) fn conduct(conducting: Conducting, ran: &mut dyn FnMut()) -> LiveResults {
    let Conducting { trials, peers, estimate, jobs, journal, stop } = conducting;
    let mode = |place: usize| match peers.get(place) {
        Some(Some(peer)) => Mode::LiveWith(peer.name().to_owned()),
        _ => Mode::Live,
    };
    let named = |(place, trial): (usize, &Trial)| trial.cell().in_mode(mode(place));
    let cells: Vec<Cell> = trials.iter().enumerate().map(named).collect();
    let shared = Arc::new(LiveState {
        cells: cells.clone(),
        peers,
        estimate,
        journal: Mutex::new(journal),
        health: Mutex::default(),
        failures: Mutex::default(),
        under_way: AtomicU32::new(0),
        stop,
    });
    // Threads of runs may outlive this call after an interruption, so they share the state.
    let make = {
        let shared = shared.clone();
        move |place: usize, trial: &Trial, seed, observe| shared.make(place, trial, seed, observe)
    };
    let mut results = conduct_by(&trials, jobs.max(1), stop, Arc::new(make), &mut |_| ran());
    // After an interruption the runs end their servers and networks.
    let until = Instant::now() + FAREWELL;
    while shared.under_way.load(Ordering::Acquire) > 0 && Instant::now() < until {
        thread::sleep(Duration::from_millis(10));
    }
    for (result, cell) in results.iter_mut().zip(cells) {
        result.cell = cell;
    }
    let (health, failures) = (take(&shared.health), take(&shared.failures));
    LiveResults { cells: results, health, failures }
}

impl LiveState {
    /// Makes the run of trial `place` with this seed, or takes it from the journal. Returns `None` if the run failed or
    /// was interrupted.
    fn make(&self, place: usize, trial: &Trial, seed: u64, observe: Observe) -> Option<RunResult> {
        let cell = self.cells.get(place)?;
        // The lock is given back before the run, which takes minutes.
        if let Some(known) = lock(&self.journal).as_ref().and_then(|journal| journal.run(cell, seed)) {
            return Some(known.clone());
        }
        let estimate = self.estimate.of(place, seed - trial.first_seed).unwrap_or_default();
        let live = Live {
            scenario: &trial.scenario,
            contender: &trial.contender,
            seed,
            observe,
            peer: self.peers.get(place)?.as_ref(),
            limit: estimate * TIMES + GRACE,
            stop: self.stop,
        };
        // `conduct` waits for these runs after an interruption, because their servers must not outlive the command.
        self.under_way.fetch_add(1, Ordering::Acquire);
        let made = run(&live);
        self.under_way.fetch_sub(1, Ordering::Release);
        match made {
            Ok((result, health)) => {
                lock(&self.health).add(&format!("{}, seed {seed}", cell.label()), &health);
                // A run that cannot be written is still a result, so the failure is only noted.
                if let Some(journal) = &mut *lock(&self.journal)
                    && let Err(error) = journal.add(cell, &result)
                {
                    lock(&self.failures).push(format!("cannot write a live run to the journal: {error}"));
                }
                Some(result)
            }
            // An interruption is not a failure of the run.
            Err(LiveError::Stopped) => None,
            Err(error) => {
                lock(&self.failures).push(format!("{}, seed {seed}: {error}", cell.label()));
                None
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn take<T: Default>(mutex: &Mutex<T>) -> T {
    std::mem::take(&mut lock(mutex))
}

#[cfg(test)]
mod tests {
    use coapace_lab::experiment;
    use coapace_run::contender::Contender;
    use coapace_scenario::Scenario;

    use super::super::estimate;
    use super::*;

    #[test]
    fn runs_recorded_in_a_journal_are_not_repeated() {
        static STOP: AtomicBool = AtomicBool::new(false);
        let fast = [
            ("clients", "4"),
            ("workload.exchanges", "2"),
            ("network.up.radio.rate", "10 Mbit/s"),
            ("network.down.radio.rate", "10 Mbit/s"),
            ("network.up.radio.delay", "1 ms"),
            ("network.down.radio.delay", "1 ms"),
            ("network.up.backhaul.jitter", r#"["0 ms", "1 ms"]"#),
            ("network.down.backhaul.jitter", r#"["0 ms", "1 ms"]"#),
        ];
        let fast = fast.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let scenario = Arc::new(Scenario::load("nb-iot", &fast).unwrap());
        let trials: Vec<Trial> = ["default", "cocoa"]
            .map(|label| Trial::new(&scenario, Contender::parse(label).unwrap(), 2))
            .into();
        let simulated = experiment::conduct(&trials, 1, &|| ());
        let path = std::env::temp_dir().join(format!("coapace-live-{}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let conducting = || Conducting {
            trials: trials.clone(),
            peers: vec![None, None],
            estimate: estimate(&trials, &simulated),
            jobs: 4,
            journal: Some(LiveJournal::open(&path, "c").unwrap()),
            stop: &STOP,
        };
        let mut made = 0;
        let first = conduct(conducting(), &mut || made += 1);
        assert_eq!((made, first.failures.len(), first.cells.len()), (4, 0, 2));
        assert_eq!((first.cells[1].cell.label(), &first.cells[1].cell.mode), ("cocoa live", &Mode::Live));
        let again = conduct(conducting(), &mut || ());
        assert_eq!(again.cells[0].runs[1].fct_s, first.cells[0].runs[1].fct_s, "to the nanosecond");
        assert_eq!(again.health.departures, 0);
        assert!(!STOP.load(Ordering::Relaxed));
        std::fs::remove_file(&path).unwrap();
    }
}
