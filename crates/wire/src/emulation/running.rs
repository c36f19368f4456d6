//! An emulation that runs on a thread of its own.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use super::EmulationError;
use super::counts::EmulationCounts;

/// An emulation that runs until it is stopped or dropped.
#[derive(Debug)]
pub struct Running<T> {
    shared: Arc<SharedEmulation>,
    thread: Option<JoinHandle<EmulationResult<T>>>,
}

/// The result of an emulation: its counters and the caller's tap.
pub(super) type EmulationResult<T> = Result<(EmulationCounts, T), EmulationError>;

/// The state that an emulation shares with other threads: its counters, and the request to stop.
#[derive(Debug, Default)]
pub(super) struct SharedEmulation {
    stops: AtomicBool,
    counts: Mutex<EmulationCounts>,
}

impl SharedEmulation {
    pub(super) fn stops(&self) -> bool {
        self.stops.load(Ordering::Relaxed)
    }

    fn counts(&self) -> EmulationCounts {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn publish(&self, counts: EmulationCounts) {
        *self.counts.lock().unwrap_or_else(PoisonError::into_inner) = counts;
    }
}

impl<T: Send + 'static> Running<T> {
    /// Starts an emulation on a thread of its own.
    pub(super) fn start(
        run: impl FnOnce(&SharedEmulation) -> EmulationResult<T> + Send + 'static,
    ) -> Result<Self, EmulationError> {
        let shared = Arc::new(SharedEmulation::default());
        let here = shared.clone();
        let thread = thread::Builder::new().name("emulation".to_owned()).spawn(move || run(&here));
        let thread = thread.map_err(|error| EmulationError::System("thread", error))?;
        Ok(Self { shared, thread: Some(thread) })
    }
}

impl<T> Running<T> {
    /// Returns the counters, which are at most a tenth of a second old.
    pub fn counts(&self) -> EmulationCounts {
        self.shared.counts()
    }

    /// Returns a view of the counters for other threads.
    pub fn watch(&self) -> EmulationView {
        EmulationView(self.shared.clone())
    }

    /// Returns whether the emulation has ended by itself, because of an error that [`stop`](Self::stop) returns.
    pub fn has_ended(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Ends the emulation within about a tenth of a second. Packets in flight are lost. Returns the counters and the
    /// caller's tap.
    ///
    /// # Errors
    /// The error with which the emulation had already ended.
    pub fn stop(mut self) -> Result<(EmulationCounts, T), EmulationError> {
        self.shared.stops.store(true, Ordering::Relaxed);
        let ended = self.thread.take().map(JoinHandle::join);
        // `join` fails if the thread panicked.
        ended.and_then(Result::ok).unwrap_or(Err(EmulationError::Ended))
    }
}

/// A view of the counters of an emulation. It may outlive the emulation.
#[derive(Clone, Debug)]
pub struct EmulationView(Arc<SharedEmulation>);

impl EmulationView {
    /// Returns the counters, which are at most a tenth of a second old while the emulation runs.
    pub fn counts(&self) -> EmulationCounts {
        self.0.counts()
    }
}

/// Asks the emulation to end when its handle is dropped, and does not wait for the end.
impl<T> Drop for Running<T> {
    fn drop(&mut self) {
        self.shared.stops.store(true, Ordering::Relaxed);
    }
}
