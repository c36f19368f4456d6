//! The way from the threads of Rust to an event loop of asyncio.

use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;

/// Something for the thread of the event loop to do.
pub(crate) type Letter = Box<dyn for<'py> FnOnce(Python<'py>) -> PyResult<()> + Send>;

/// Letters that no loop has opened yet. There is at most one for each request that a client has made, and one for each place
/// that a server has.
#[derive(Clone)]
pub(crate) struct Post(Arc<MailboxState>);

struct MailboxState {
    letters: Mutex<Vec<Letter>>,
    /// Written to when letters arrive.
    bell: UnixStream,
    /// Watched by the loop.
    ear: UnixStream,
}

impl Post {
    pub(crate) fn new() -> io::Result<Self> {
        let (bell, ear) = UnixStream::pair()?;
        bell.set_nonblocking(true)?;
        ear.set_nonblocking(true)?;
        Ok(Self(Arc::new(MailboxState { letters: Mutex::default(), bell, ear })))
    }

    /// Leaves a letter, and wakes the loop unless earlier letters have done so. It never waits for the interpreter.
    pub(crate) fn post(&self, letter: Letter) {
        let mut letters = self.letters();
        letters.push(letter);
        let first = letters.len() == 1;
        drop(letters);
        if first {
            self.ring();
        }
    }

    fn letters(&self) -> MutexGuard<'_, Vec<Letter>> {
        self.0.letters.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn ring(&self) {
        // A full pipe has woken the loop already.
        let _ = (&self.0.bell).write(&[0]);
    }
}

/// The end of the way that an event loop watches: `loop.add_reader(mailbox.fileno(), mailbox.deliver)`.
#[pyclass(frozen, module = "coapace._native")]
pub(crate) struct Mailbox(pub(crate) Post);

#[pymethods]
impl Mailbox {
    /// The descriptor that is readable when there are letters.
    fn fileno(&self) -> i32 {
        self.0.0.ear.as_raw_fd()
    }

    /// Does what the letters ask for. An exception leaves the later ones for the next call.
    fn deliver(&self, py: Python<'_>) -> PyResult<()> {
        // The bell is silenced first: a letter that arrives after this rings again.
        while (&self.0.0.ear).read(&mut [0; 64]).is_ok_and(|bytes| bytes == 64) {}
        let mut letters = std::mem::take(&mut *self.0.letters()).into_iter();
        while let Some(letter) = letters.next() {
            if let Err(error) = letter(py) {
                self.0.letters().splice(..0, letters);
                self.0.ring();
                return Err(error);
            }
        }
        Ok(())
    }
}
