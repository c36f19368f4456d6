//! The parameters of a relay.

use coapace_control::{Duration, Mechanism, Tide};
use coapace_net::Verify;
use coapace_proto::Config;

use crate::Face;

/// The mechanism of a relay, and the limits of its tables.
#[derive(Clone, Debug, PartialEq)]
pub struct RelayConfig {
    /// The congestion control, towards the clients and towards the server.
    pub mechanism: Mechanism,
    /// The congestion control for the blocks of a body, which the relay then reads ahead of its clients. `None` forwards each
    /// request for a block.
    pub bulk: Option<Mechanism>,
    /// MAX_RETRANSMIT (RFC 7252 §4.8).
    pub max_retransmit: u8,
    /// NSTART (RFC 7252 §4.7) of each source. With `None` it is the mechanism's own NSTART, or 1 if the mechanism has
    /// none.
    pub nstart: Option<u16>,
    /// True if all clients of one IP address are one source: they share a port towards the server, the estimates of the
    /// mechanism, and NSTART. It suits programs that run for one request each and so use a new port every time.
    pub shares: bool,
    /// True if the relay answers no copy of a client's request while its last answer may still be travelling
    /// (`docs/sluice.md`).
    pub sluice: bool,
    /// The clients that must verify their address with an Echo option (RFC 9175 §2.4). Until then they get at most
    /// three times the bytes that they have sent, and may use three quarters of the sources and exchanges. A request
    /// beyond that is answered with a demand for the option.
    pub verify: Verify,
    /// The maximum number of sources, which are the clients with a port towards the server. A new source beyond that
    /// replaces the source that was idle for longest. If none is idle, its request is answered 5.03.
    pub max_sources: u32,
    /// The maximum number of outstanding or waiting exchanges, on each side. A request beyond that is answered 5.03. A
    /// source may have at most a sixteenth as many exchanges as are free, or one if that is more.
    pub max_exchanges: u32,
    /// The maximum number of outstanding or waiting exchanges of one source. A request beyond that is answered 5.03.
    pub max_exchanges_of_source: u32,
    /// The maximum number of bytes of all bodies that are read ahead. Bodies beyond that are not read ahead: each
    /// request for a block is forwarded.
    pub max_body_bytes: usize,
    /// The maximum number of observations. A registration beyond that is answered 5.03.
    pub max_observers: u32,
}

impl RelayConfig {
    /// Returns the default configuration with this mechanism.
    pub fn new(mechanism: Mechanism) -> Self {
        Self {
            mechanism,
            bulk: Some(Mechanism::Tide(Tide::DEFAULT)),
            max_retransmit: 4,
            nstart: None,
            shares: false,
            sluice: false,
            verify: Verify::default(),
            max_sources: 1_024,
            max_exchanges: 4_096,
            max_exchanges_of_source: 256,
            max_body_bytes: 64 << 20,
            max_observers: 1_024,
        }
    }

    /// Returns the parameters of the endpoint on one side.
    pub(crate) fn endpoint(&self, face: Face) -> Config {
        /// For each possible exchange, how many messages are remembered: of clients, and of the server.
        const REMEMBERED: [u32; 2] = [32, 4];
        /// The longest accepted token of a client (RFC 8974). The relay's own tokens have 4 bytes.
        const MAX_TOKEN: u16 = 64;

        let clients = face == Face::Clients;
        Config {
            max_retransmit: self.max_retransmit,
            nstart: self.nstart,
            // The client that asked knows which options it understands.
            recognised: None,
            max_exchanges: self.max_exchanges,
            max_peers: self.max_sources,
            max_token: MAX_TOKEN,
            max_observers: self.max_observers,
            max_listeners: self.max_observers,
            max_replies: self.max_exchanges,
            max_deduplicated: self.max_exchanges.saturating_mul(REMEMBERED[face as usize]),
            // Copies of the server are always answered, because the sluice is for clients.
            max_sluiced: if clients && self.sluice { self.max_sources } else { 0 },
            ..Config::default()
        }
    }
}

/// The wait for the response to a non-confirmable request, in RTOs of the mechanism, and its lower bound.
const NON_WAIT: (u32, Duration) = (3, Duration::from_secs(5));

/// Returns how long a non-confirmable request occupies its slot of NSTART without a response, at this RTO.
///
/// RFC 7252 §4.7 leaves open when a client stops to expect a response. An endpoint of an application waits until the
/// application cancels. The relay does not learn that the application no longer waits.
pub(crate) fn non_wait(rto: Duration) -> Duration {
    rto.times(NON_WAIT.0).max(NON_WAIT.1)
}
