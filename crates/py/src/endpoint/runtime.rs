//! The runtime of all clients and servers: one thread, started on first use, which runs until the process ends.

use std::future::pending;
use std::process;
use std::sync::{Mutex, PoisonError};
use std::thread;

use pyo3::PyResult;
use tokio::runtime::{Builder, Handle};

/// The runtime, and the process that its thread is in.
#[derive(Clone, Debug)]
pub(crate) struct Runtime {
    pub(crate) handle: Handle,
    process: u32,
}

static RUNTIME: Mutex<Option<Runtime>> = Mutex::new(None);

impl Runtime {
    /// Returns the runtime, and starts it if this process has none.
    ///
    /// # Errors
    /// Errors of the system, if it cannot start a thread.
    pub(crate) fn get() -> PyResult<Self> {
        let mut known = RUNTIME.lock().unwrap_or_else(PoisonError::into_inner);
        // A forked process inherits this value and not the thread.
        if let Some(runtime) = known.as_ref().filter(|runtime| runtime.is_here()) {
            return Ok(runtime.clone());
        }
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let started = Self { handle: runtime.handle().clone(), process: process::id() };
        // A runtime of one thread makes progress only inside `block_on`.
        let run = move || runtime.block_on(pending::<()>());
        thread::Builder::new().name("coapace".to_owned()).spawn(run)?;
        // After a fork, the parent's runtime has no thread in this process, so it is not dropped.
        std::mem::forget(known.replace(started.clone()));
        Ok(started)
    }

    /// Returns whether the runtime's thread is in this process, not in the parent before a fork.
    pub(crate) fn is_here(&self) -> bool {
        self.process == process::id()
    }
}
