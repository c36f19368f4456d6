//! Locks on files that only one process may write.

use std::fs::TryLockError;
use std::io;

/// Turns the failure to get a lock held by another process into an error with the text `refusal`. A file system without locks
/// is not an error.
///
/// # Errors
/// An error with the text `refusal`.
pub fn held(lock: &Result<(), TryLockError>, refusal: &str) -> io::Result<()> {
    match lock {
        Err(TryLockError::WouldBlock) => Err(io::Error::other(refusal)),
        // Some file systems have no locks.
        Ok(()) | Err(TryLockError::Error(_)) => Ok(()),
    }
}
