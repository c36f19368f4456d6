//! Locks on files that one process writes.

use std::fs::TryLockError;
use std::io;

/// Turns a lock that another process has into an error with the text `refusal`. A file system without locks is not an error.
///
/// # Errors
/// Fails with `refusal`.
pub fn held(lock: &Result<(), TryLockError>, refusal: &str) -> io::Result<()> {
    match lock {
        Err(TryLockError::WouldBlock) => Err(io::Error::other(refusal)),
        // Some file systems have no locks.
        Ok(()) | Err(TryLockError::Error(_)) => Ok(()),
    }
}
