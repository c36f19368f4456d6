//! The runtime of all clients and servers: one thread, which is started on first use and runs until the process ends.

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
    /// Returns the runtime, which is started if this process has none.
    ///
    /// # Errors
    /// The errors of the system, if it has no room for a thread.
    pub(crate) fn get() -> PyResult<Self> {
        let mut known = RUNTIME.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(runtime) = known.as_ref().filter(|runtime| runtime.is_here()) {
            return Ok(runtime.clone());
        }
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let started = Self { handle: runtime.handle().clone(), process: process::id() };
        let run = move || runtime.block_on(pending::<()>());
        thread::Builder::new().name("coapace".to_owned()).spawn(run)?;
        // After a fork, the parent's runtime has no thread in this process, so it is not dropped.
        std::mem::forget(known.replace(started.clone()));
        Ok(started)
    }

    /// Returns whether the runtime has its thread in this process, and not in the parent before a fork.
    pub(crate) fn is_here(&self) -> bool {
        self.process == process::id()
    }
}
