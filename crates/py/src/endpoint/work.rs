//! Work of the runtime whose result goes to an asyncio future.

use std::future::Future;

use coapace_net::Error;
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use tokio::task::AbortHandle;

use super::failure::raised;
use super::mailbox::Post;
use super::runtime::Runtime;

/// Starts the work of one client or server, and sends its results to the event loop.
#[derive(Clone)]
pub(crate) struct Desk {
    pub(crate) runtime: Runtime,
    pub(crate) post: Post,
}

impl Desk {
    pub(crate) fn new() -> PyResult<Self> {
        Ok(Self { runtime: Runtime::get()?, post: Post::new()? })
    }

    /// Starts work. Its result, or its error about `uri`, becomes the result of `future`, unless the future is cancelled before.
    ///
    /// # Errors
    /// `RuntimeError` in a child process, if the client or server was made by its parent.
    pub(crate) fn start<T>(
        &self,
        future: Py<PyAny>,
        uri: String,
        work: impl Future<Output = Result<T, Error>> + Send + 'static,
    ) -> PyResult<Call>
    where
        T: for<'py> IntoPyObject<'py> + Send + 'static,
    {
        // In a child process the runtime has no thread, so the future would never get a result.
        self.check()?;
        let post = self.post.clone();
        let task = self.runtime.handle.spawn(async move {
            let result = work.await;
            // Only the event loop's thread touches the future, because asyncio's futures are not safe in other threads.
            post.post(Box::new(move |py| settle(py, future.bind(py), result, &uri)));
        });
        Ok(Call(task.abort_handle()))
    }

    /// Returns an error in a child process, if its parent made the client or server.
    pub(crate) fn check(&self) -> PyResult<()> {
        if self.runtime.is_here() {
            return Ok(());
        }
        Err(PyRuntimeError::new_err(
            "clients and servers do not survive a fork; make another in the child process",
        ))
    }
}

/// Sets the result of a future, unless it is done or cancelled.
fn settle<T>(py: Python<'_>, future: &Bound<'_, PyAny>, result: Result<T, Error>, uri: &str) -> PyResult<()>
where
    T: for<'py> IntoPyObject<'py>,
{
    // A second result would raise `InvalidStateError`.
    if future.call_method0("done")?.is_truthy()? {
        return Ok(());
    }
    match result {
        Ok(value) => future.call_method1("set_result", (value.into_py_any(py)?,)),
        Err(error) => future.call_method1("set_exception", (raised(py, error, uri),)),
    }
    .map(drop)
}

/// Work in progress, such as a request.
#[pyclass(frozen, module = "coapace._native")]
pub(crate) struct Call(AbortHandle);

#[pymethods]
impl Call {
    /// Ends the work, unless it is done. An exchange is cancelled: it is not retransmitted any more.
    fn cancel(&self) {
        self.0.abort();
    }
}
