//! Locks on files that only one process may write.

use std::fs::TryLockError;
use std::io;

/// Returns an error with the text `refusal` if `lock`, the result of a try to lock a file, shows that another process
/// holds the lock. A file system without locks is not an error.
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
