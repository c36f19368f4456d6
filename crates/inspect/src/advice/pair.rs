//! A client and a server that exchanged messages in a capture.

use std::net::SocketAddr;

/// A client–server pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The address and port from which requests are sent.
    pub client: SocketAddr,
    /// The address and port to which requests are sent.
    pub server: SocketAddr,
    /// Whether the traffic is certainly CoAP: one port is a known one, or one side answered a message of the other.
    pub(super) is_certain: bool,
}
