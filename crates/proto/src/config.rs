//! What an endpoint is set up with.

use coapace_control::{Controller, Duration};

/// Transmission parameters (RFC 7252 §4.8) and bounds of an endpoint.
///
/// ACK_TIMEOUT and ACK_RANDOM_FACTOR are parameters of the mechanism.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// MAX_RETRANSMIT: retransmissions before an exchange is given up.
    pub max_retransmit: u8,
    /// NSTART: exchanges outstanding to one destination; the rest waits.
    pub nstart: u16,
    /// PROBING_RATE: the average rate, in bytes of CoAP per second, of non-confirmable messages to a destination that
    /// nothing is heard of (RFC 7252 §4.7); 0 sets no such bound, and what is left is the gap that the mechanism asks
    /// for. At 1 byte/s a message of 40 bytes keeps the next one back for 40 s, unless the destination is heard before.
    pub probing_rate: u32,
    /// Of so many messages in a row to one destination, one is confirmable (draft-ietf-core-cocoa-03 §5: at least two
    /// in any sixteen): where seven were not, the eighth leaves as confirmable, whatever was asked for. Requests count,
    /// retransmissions and responses do not. 0 leaves every message as it is.
    pub confirmable_every: u8,
    /// MAX_LATENCY: the longest time a datagram takes from one end to the other.
    pub max_latency: Duration,
    /// PROCESSING_DELAY: the time a node takes from receiving a confirmable message to acknowledging it.
    pub processing_delay: Duration,
    /// How long to wait for the response to a request that is acknowledged or non-confirmable.
    pub response_timeout: Duration,
    /// Exchanges that may exist at once, outstanding and waiting together.
    pub max_exchanges: u32,
    /// Destinations remembered; beyond that the least recently used that has no exchange leaves.
    pub max_peers: u32,
    /// Bytes of the longest token that a request may have. More than 8 are an extension of RFC 8974: a request with a longer
    /// token is rejected. As many such tokens are kept as there may be observers and peers.
    pub max_token: u16,
    /// Observers that may be registered here.
    pub max_observers: u32,
    /// Observations of this endpoint and its requests to groups that may be open.
    pub max_listeners: u32,
    /// Acknowledgements, resets and responses that may wait to be sent.
    pub max_replies: u32,
    /// Received messages remembered to recognise duplicates; 0 answers every copy anew.
    pub max_deduplicated: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            max_retransmit: 4,
            nstart: 1,
            probing_rate: 1,
            confirmable_every: 8,
            max_latency: Duration::from_secs(100),
            processing_delay: Duration::from_secs(2),
            response_timeout: Duration::from_secs(247),
            max_exchanges: 64,
            max_peers: 64,
            max_token: 8,
            max_observers: 64,
            max_listeners: 64,
            max_replies: 64,
            max_deduplicated: 256,
        }
    }
}

impl Config {
    /// How long a non-confirmable message of so many bytes keeps the next one back where nothing is heard.
    pub(crate) fn probing_gap(&self, bytes: usize) -> Duration {
        match self.probing_rate {
            0 => Duration::ZERO,
            rate => Duration::from_micros((bytes as u64).saturating_mul(1_000_000).div_ceil(rate.into())),
        }
    }
}

/// A mechanism and the parameters around it: made once, shared by any number of endpoints.
#[derive(Debug)]
pub struct Setup<C> {
    /// The congestion control.
    pub controller: C,
    /// The rest.
    pub config: Config,
}

impl<C: Controller> Setup<C> {
    /// MAX_TRANSMIT_SPAN: from the first transmission to the last retransmission (RFC 7252 §4.8.2), with the timeouts
    /// of the mechanism in force.
    pub fn max_transmit_span(&self) -> Duration {
        self.controller.max_span(self.config.max_retransmit)
    }

    /// EXCHANGE_LIFETIME: from the first transmission of a confirmable message until its Message ID may be used again
    /// (RFC 7252 §4.8.2).
    pub fn exchange_lifetime(&self) -> Duration {
        self.max_transmit_span() + self.config.max_latency.doubled() + self.config.processing_delay
    }

    /// NON_LIFETIME: the same for a non-confirmable message (RFC 7252 §4.8.2).
    pub fn non_lifetime(&self) -> Duration {
        self.max_transmit_span() + self.config.max_latency
    }
}
