//! A hook that sees the datagrams of a client or server, and may drop them.

use std::fmt::Debug;
use std::net::SocketAddr;

/// A hook that sees every datagram of a client or server, and may drop it: for captures, and to simulate a bad network.
/// With DTLS it sees the encrypted records. It does not see TCP.
pub trait Interceptor: Debug + Send + Sync {
    /// Called with a datagram that is about to be sent, or has arrived. Returns `false` to drop it. The task that sends or
    /// receives calls this, so it must not block.
    fn pass(&self, datagram: &Datagram<'_>) -> bool;
}

/// A datagram that is sent or received.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Datagram<'a> {
    /// The direction.
    pub direction: Direction,
    /// The local address. Its IP address is unspecified if the system chooses it.
    pub local: SocketAddr,
    /// The address of the peer.
    pub peer: SocketAddr,
    /// The bytes of the datagram: a CoAP message, or DTLS records.
    pub bytes: &'a [u8],
}

impl<'a> Datagram<'a> {
    /// Creates the description of a datagram for an interceptor.
    pub const fn new(direction: Direction, local: SocketAddr, peer: SocketAddr, bytes: &'a [u8]) -> Self {
        Self { direction, local, peer, bytes }
    }
}

/// The direction of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// To the peer.
    Sent,
    /// From the peer.
    Received,
}
