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
            max_latency: Duration::from_secs(100),
            processing_delay: Duration::from_secs(2),
            response_timeout: Duration::from_secs(247),
            max_exchanges: 64,
            max_peers: 64,
            max_replies: 64,
            max_deduplicated: 256,
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
