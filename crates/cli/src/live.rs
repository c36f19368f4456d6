//! Many live runs, some at a time.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use coapace_lab::experiment::{Trial, cells, conduct_by};
use coapace_lab::results::{Cell, CellResult, Mode};
use coapace_run::Observe;
use coapace_run::measured::RunResult;

use super::{Estimate, Health, Journal, Live, LiveError, Peer, run};

/// A run is given up after this many times the time that was estimated, and [`GRACE`].
const TIMES: u32 = 5;

/// The time beyond that. Behind a lossy link one client in backoff may take minutes more than in the simulation.
const GRACE: Duration = Duration::from_mins(5);

/// The longest time that interrupted runs have to end.
const FAREWELL: Duration = Duration::from_secs(5);

/// Live runs to be made.
#[derive(Debug)]
pub struct Conducting {
    /// The trials.
    pub trials: Vec<Trial>,
    /// The server of each trial; `None` is ours.
    pub peers: Vec<Option<Peer>>,
    /// The time that each run probably takes.
    pub estimate: Estimate,
    /// The number of runs at a time.
    pub jobs: usize,
    /// The runs that were made before, and the file to keep others in.
    pub journal: Option<Journal>,
    /// Ends all runs when it becomes true.
    pub stop: &'static AtomicBool,
}

/// The results of live runs.
#[derive(Debug, Default)]
pub struct Outcome {
    /// A cell for each trial.
    pub cells: Vec<CellResult>,
    /// How well all runs kept their times.
    pub health: Health,
    /// The runs that failed, in a line each.
    pub failures: Vec<String>,
}

/// What the threads share.
struct Shared {
    peers: Vec<Option<Peer>>,
    cells: Vec<Cell>,
    estimate: Estimate,
    journal: Mutex<Option<Journal>>,
    health: Mutex<Health>,
    failures: Mutex<Vec<String>>,
    /// The runs that have begun and are not over.
    under_way: AtomicU32,
    stop: &'static AtomicBool,
}

/// Makes live runs, and calls `ran` after each.
pub fn conduct(conducting: Conducting, ran: &mut dyn FnMut()) -> Outcome {
    let Conducting { trials, peers, estimate, jobs, journal, stop } = conducting;
    let mode = |place: usize| match peers.get(place) {
        Some(Some(peer)) => Mode::LiveWith(peer.name().to_owned()),
        _ => Mode::Live,
    };
    let named = |(place, result): (usize, CellResult)| result.cell.in_mode(mode(place));
    let cells: Vec<Cell> = cells(&trials).into_iter().enumerate().map(named).collect();
    let shared = Arc::new(Shared {
        cells: cells.clone(),
        peers,
        estimate,
        journal: Mutex::new(journal),
        health: Mutex::default(),
        failures: Mutex::default(),
        under_way: AtomicU32::new(0),
        stop,
    });
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
    Outcome { cells: results, health, failures }
}

impl Shared {
    /// Makes a run, or returns the one that was made before.
    fn make(&self, place: usize, trial: &Trial, seed: u64, observe: Observe) -> Option<RunResult> {
        let cell = self.cells.get(place)?;
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
        self.under_way.fetch_add(1, Ordering::Acquire);
        let made = run(&live);
        self.under_way.fetch_sub(1, Ordering::Release);
        match made {
            Ok((result, health)) => {
                lock(&self.health).add(&format!("{}, seed {seed}", cell.label()), &health);
                if let Some(journal) = &mut *lock(&self.journal)
                    && let Err(error) = journal.add(cell, &result)
                {
                    lock(&self.failures).push(format!("the journal has no more room: {error}"));
                }
                Some(result)
            }
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
