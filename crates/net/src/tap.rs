//! What watches the datagrams of a client or server.

use std::fmt::Debug;
use std::net::SocketAddr;

/// Sees every datagram of a client or server, and may lose it: for captures, and to try out what a bad network does. Of
/// DTLS it sees the records, of TCP nothing.
pub trait Tap: Debug + Send + Sync {
    /// A datagram is about to leave, or has arrived. Returns whether it goes on; else it is lost. It is called by
    /// whoever sends or receives, so it is not to wait for anything.
    fn pass(&self, datagram: &Datagram<'_>) -> bool;
}

/// A datagram that passes by.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Datagram<'a> {
    /// Whether it leaves.
    pub direction: Direction,
    /// The own address, unspecified but for its port where the system chooses it.
    pub local: SocketAddr,
    /// The other end.
    pub peer: SocketAddr,
    /// What is in it.
    pub bytes: &'a [u8],
}

/// Which way a datagram goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// To the peer.
    Sent,
    /// From the peer.
    Received,
}
