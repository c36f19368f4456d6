//! The reason why an emulation cannot run.

use std::io;
use std::net::SocketAddr;

/// The reason why an emulation did not begin, or ended.
#[derive(Debug, thiserror::Error)]
pub enum EmulationError {
    /// The scenario has a mesh.
    #[error(
        "a mesh cannot be emulated: name a scenario with [[network.up]] and [[network.down]], such as nb-iot"
    )]
    Mesh,
    /// The system refuses the address to listen at.
    #[error("cannot listen at {0}: {1}")]
    Listen(SocketAddr, io::Error),
    /// A relay would send to the address at which it listens.
    #[error("the relay would send to itself: {0} is the address that it listens at")]
    Circle(SocketAddr),
    /// The system does not let this user make network namespaces.
    #[error(
        "no network namespace can be made ({0}): run it as root, or allow user namespaces (sysctl user.max_user_namespaces, \
         kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns)"
    )]
    Privileges(io::Error),
    /// The system refused something that the emulator needs.
    #[error("the system refuses the emulator's {0}: {1}")]
    System(&'static str, io::Error),
    /// The thread of the emulator panicked.
    #[error("a bug ended the emulator; please report it")]
    Ended,
}
