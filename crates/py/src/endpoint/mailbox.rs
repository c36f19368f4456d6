//! Passes results from Rust threads to an asyncio event loop.

use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;

/// A function for the event loop's thread to call.
pub(crate) type Letter = Box<dyn for<'py> FnOnce(Python<'py>) -> PyResult<()> + Send>;

/// Letters that the event loop has not handled yet. There is at most one for each request that a client has made, and one for
/// each slot of a server.
#[derive(Clone)]
pub(crate) struct Post(Arc<MailboxState>);

struct MailboxState {
    letters: Mutex<Vec<Letter>>,
    /// The socket that is written to when letters arrive.
    bell: UnixStream,
    /// The socket that the event loop watches.
    ear: UnixStream,
}

impl Post {
    pub(crate) fn new() -> io::Result<Self> {
        let (bell, ear) = UnixStream::pair()?;
        bell.set_nonblocking(true)?;
        ear.set_nonblocking(true)?;
        Ok(Self(Arc::new(MailboxState { letters: Mutex::default(), bell, ear })))
    }

    /// Adds a letter, and wakes the event loop unless an earlier letter has done so. This never waits for the interpreter.
    pub(crate) fn post(&self, letter: Letter) {
        let mut letters = self.letters();
        letters.push(letter);
        let first = letters.len() == 1;
        // The event loop may wake at once and take the lock, so it is released first.
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

/// The receiver of letters, which an event loop watches: `loop.add_reader(mailbox.fileno(), mailbox.deliver)`.
#[pyclass(frozen, module = "coapace._native")]
pub(crate) struct Mailbox(pub(crate) Post);

#[pymethods]
impl Mailbox {
    /// The descriptor that is readable when there are letters.
    fn fileno(&self) -> i32 {
        self.0.0.ear.as_raw_fd()
    }

    /// Calls the letters' functions. After an exception, the remaining letters wait for the next call.
    fn deliver(&self, py: Python<'_>) -> PyResult<()> {
        // The bell is silenced first: a letter that arrives after this rings again.
        while (&self.0.0.ear).read(&mut [0; 64]).is_ok_and(|bytes| bytes == 64) {}
        let mut letters = std::mem::take(&mut *self.0.letters()).into_iter();
        while let Some(letter) = letters.next() {
            if let Err(error) = letter(py) {
                // The other letters stay in front of those that have come meanwhile.
                self.0.letters().splice(..0, letters);
                // The bell was silenced above, so the rest would wait for the next letter.
                self.0.ring();
                return Err(error);
            }
        }
        Ok(())
    }
}
