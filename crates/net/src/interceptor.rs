//! The one who may see and lose the datagrams of a client or server.

use std::fmt::Debug;
use std::net::SocketAddr;

/// Sees every datagram of a client or server, and may lose it: for captures, and to try out what a bad network does. Of
/// DTLS it sees the records, of TCP nothing.
pub trait Interceptor: Debug + Send + Sync {
    /// Sees a datagram that is about to leave, or has arrived. Returns whether it goes on. Otherwise it is lost. The task that
    /// sends or receives calls this, so it must not wait for anything.
    fn pass(&self, datagram: &Datagram<'_>) -> bool;
}

/// A datagram that passes by.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Datagram<'a> {
    /// Its direction.
    pub direction: Direction,
    /// The own address, unspecified but for its port where the system chooses it.
    pub local: SocketAddr,
    /// The other end.
    pub peer: SocketAddr,
    /// Its bytes.
    pub bytes: &'a [u8],
}

/// The direction of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// It goes to the peer.
    Sent,
    /// It comes from the peer.
    Received,
}
