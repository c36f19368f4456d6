//! Observations of resources.

use std::sync::Arc;

use coapace_net::Observation;
use pyo3::prelude::*;
use tokio::sync::Mutex;

use super::response::Response;
use super::work::{Call, Desk};

/// An observation with callbacks in place of an asyncio interface.
#[pyclass(frozen, module = "coapace._native")]
pub(crate) struct NativeObservation {
    desk: Desk,
    uri: String,
    /// The observation; empty once it has ended.
    observed: Arc<Mutex<Option<Observation>>>,
}

impl NativeObservation {
    pub(crate) fn new(desk: Desk, uri: String, observed: Observation) -> Self {
        Self { desk, uri, observed: Arc::new(Mutex::new(Some(observed))) }
    }
}

#[pymethods]
impl NativeObservation {
    /// Waits for the next representation. `future` gets it, or None once the server has ended the observation.
    fn next(&self, future: Py<PyAny>) -> PyResult<Call> {
        let observed = self.observed.clone();
        self.desk.start(future, self.uri.clone(), async move {
            let mut observed = observed.lock().await;
            let Some(observation) = observed.as_mut() else { return Ok(None) };
            Ok(observation.next().await.transpose()?.map(Response))
        })
    }

    /// Deregisters. `future` ends with the server's answer.
    fn end(&self, future: Py<PyAny>) -> PyResult<Call> {
        let observed = self.observed.clone();
        self.desk.start(future, self.uri.clone(), async move {
            // Taken out, so that a later `next` sees the end.
            let observed = observed.lock().await.take();
            match observed {
                Some(observation) => observation.end().await,
                None => Ok(()),
            }
        })
    }
}

/// Deregisters without waiting for the answer.
impl Drop for NativeObservation {
    fn drop(&mut self) {
        let observed = std::mem::take(&mut self.observed);
        if self.desk.check().is_err() {
            // The parent process shares the socket, and its observation goes on.
            std::mem::forget(observed);
            return;
        }
        // The interpreter may drop this in any thread, and the message of a dropped observation needs the runtime.
        let _inside = self.desk.runtime.handle.enter();
        drop(observed);
    }
}
