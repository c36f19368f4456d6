//! The right to make network namespaces.

use std::fs;
use std::io;
use std::thread;
use std::time::Duration;

use nix::errno::Errno;
use nix::sched::{CloneFlags, unshare};
use nix::unistd::{getegid, geteuid};

use super::EmulationError;

/// Gives this process the right to make network namespaces. A process without this right moves into a user namespace in
/// which it is root, like `unshare --map-root-user`. Its rights outside the user namespace do not change. Call this
/// function before anything starts a thread.
///
/// # Errors
/// [`EmulationError::Privileges`] if the system does not allow this user to make namespaces.
pub fn take_privileges() -> Result<(), EmulationError> {
    // A thread tries it, because unshare(2) moves the thread that calls it. It ends at once, and the namespace with it.
    let may = thread::spawn(|| unshare(CloneFlags::CLONE_NEWNET).is_ok()).join();
    if may.unwrap_or(false) {
        return Ok(());
    }
    // In the namespace the process has other IDs until they are mapped. `gid_map` can be written only after setgroups(2) is denied.
    let (user, group) = (geteuid(), getegid());
    enter().map_err(EmulationError::Privileges)?;
    let map = |file: &str, text: String| fs::write(format!("/proc/self/{file}"), text);
    // Without privileges only the process's own IDs can be mapped (user_namespaces(7)).
    map("setgroups", "deny".to_owned())
        .and_then(|()| map("uid_map", format!("0 {user} 1")))
        .and_then(|()| map("gid_map", format!("0 {group} 1")))
        .map_err(EmulationError::Privileges)
}

/// Moves the process into a user namespace. Only a process with one thread may move, and a thread that has just ended may still
/// count for a moment.
fn enter() -> io::Result<()> {
    for _ in 0..50 {
        match unshare(CloneFlags::CLONE_NEWUSER) {
            Err(Errno::EINVAL) => thread::sleep(Duration::from_millis(2)),
            entered => return entered.map_err(io::Error::from),
        }
    }
    unshare(CloneFlags::CLONE_NEWUSER).map_err(io::Error::from)
}
