//! The parameters of a relay.

use crate::Verify;
use coapace_control::{Duration, Mechanism, Tide};
use coapace_proto::Config;

use super::Face;

/// The mechanism of a relay, and the bounds of its tables.
#[derive(Clone, Debug, PartialEq)]
pub struct RelayConfig {
    /// The congestion control, at both faces.
    pub mechanism: Mechanism,
    /// The congestion control of the blocks of a body, which the relay then reads ahead of its clients. `None` passes each request
    /// for a block on.
    pub bulk: Option<Mechanism>,
    /// MAX_RETRANSMIT (RFC 7252 §4.8).
    pub max_retransmit: u8,
    /// NSTART (RFC 7252 §4.7) of each source. `None` leaves it to the mechanism; if that has none, it is 1.
    pub nstart: Option<u16>,
    /// True if all clients of one IP address are one source: they share a port towards the server, the estimates of the mechanism,
    /// and NSTART. It suits programs that run for one request each and so begin with a new port every time.
    pub shares: bool,
    /// True if answers to copies of clients are withheld while the last answer may still be under way (`docs/sluice.md`).
    pub sluice: bool,
    /// The clients that have to show with an Echo option that their address is their own (RFC 9175 §2.4). Until then they are
    /// strangers: they are sent three times what they send, and have three quarters of the sources and exchanges. Where these are
    /// taken, they are asked for the option.
    pub verify: Verify,
    /// The most sources. Each has a port towards the server. Beyond it, the one that was idle for longest makes room. If none is
    /// idle, the request is answered 5.03.
    pub max_sources: u32,
    /// The most exchanges under way or waiting, at each face. A request beyond it is answered 5.03. A source has at most a
    /// sixteenth of those that are left.
    pub max_exchanges: u32,
    /// The most exchanges under way or waiting that one source may have. A request beyond it is answered 5.03.
    pub max_exchanges_of_source: u32,
    /// The most bytes of bodies that are read ahead. Beyond it, requests for blocks are passed on.
    pub max_body_bytes: usize,
    /// The most observations. A registration beyond it is answered 5.03.
    pub max_observers: u32,
}

impl RelayConfig {
    /// Returns the defaults around a mechanism.
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

    /// Returns the parameters of the endpoint at a face.
    pub(super) fn endpoint(&self, face: Face) -> Config {
        /// Messages of clients and of the server remembered for each exchange that may be under way.
        const REMEMBERED: [u32; 2] = [32, 4];
        /// The longest token that a client may have (RFC 8974). The relay's own have 4 bytes.
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
            max_sluiced: if clients && self.sluice { self.max_sources } else { 0 },
            ..Config::default()
        }
    }
}

/// The wait for the response to a non-confirmable request, in RTOs of the mechanism, and its lower bound.
const NON_WAIT: (u32, Duration) = (3, Duration::from_secs(5));

/// Returns how long a non-confirmable request keeps its place of NSTART without a response, at this RTO.
///
/// RFC 7252 §4.7 leaves open when a client stops to expect a response. An endpoint of an application waits until the application
/// cancels. The relay never hears that the application has gone on.
pub(super) fn non_wait(rto: Duration) -> Duration {
    rto.times(NON_WAIT.0).max(NON_WAIT.1)
}
