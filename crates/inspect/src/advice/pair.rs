//! A client and a server whose messages a capture has.

use std::net::SocketAddr;

/// A client and a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pair {
    /// The end that makes requests.
    pub client: SocketAddr,
    /// The end that answers them.
    pub server: SocketAddr,
    /// Whether the traffic is CoAP for certain: a port says so, or both ends were heard.
    pub(super) is_certain: bool,
}
