//! Requests to groups.

use std::sync::Arc;

use coapace_net::Group;
use pyo3::prelude::*;
use tokio::sync::Mutex;

use super::response::Response;
use super::work::{Call, Desk};

/// The answers of a group's members, with callbacks in place of an asyncio interface.
#[pyclass(frozen, module = "coapace._native")]
pub(crate) struct NativeGroup {
    desk: Desk,
    uri: String,
    /// The answers; empty once the time for answers is over.
    answers: Arc<Mutex<Option<Group>>>,
}

impl NativeGroup {
    pub(crate) fn new(desk: Desk, uri: String, answers: Group) -> Self {
        Self { desk, uri, answers: Arc::new(Mutex::new(Some(answers))) }
    }
}

#[pymethods]
impl NativeGroup {
    /// Waits for the next answer. `future` gets the address of the member and its whole response, or None once the time is over.
    fn next(&self, future: Py<PyAny>) -> PyResult<Call> {
        let answers = self.answers.clone();
        self.desk.start(future, self.uri.clone(), async move {
            // The lock is held while the next answer is awaited, so it is one of tokio.
            let mut answers = answers.lock().await;
            let Some(group) = answers.as_mut() else { return Ok(None) };
            let Some((member, response)) = group.next().await else {
                *answers = None;
                return Ok(None);
            };
            Ok(Some((member.to_string(), Response(group.whole(member, response).await?))))
        })
    }

    /// Stops waiting for answers.
    fn end(&self) -> PyResult<()> {
        self.desk.check()?;
        let answers = self.answers.clone();
        // A call of `next` may hold the lock for as long as answers are awaited, so the runtime waits for it and not Python.
        self.desk.runtime.handle.spawn(async move { drop(answers.lock().await.take()) });
        Ok(())
    }
}
