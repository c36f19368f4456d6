//! What an endpoint is set up with.

use coapace_control::{Controller, Draw, Duration, Instant, Limits};

use crate::Patience;

/// Transmission parameters (RFC 7252 §4.8) and bounds of an endpoint.
///
/// ACK_TIMEOUT and ACK_RANDOM_FACTOR are parameters of the mechanism.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// MAX_RETRANSMIT: retransmissions before an exchange is given up.
    pub max_retransmit: u8,
    /// NSTART: exchanges outstanding to one destination; the rest waits. A mechanism that has a bound of its own
    /// ([`Limits::nstart`]) may stay below this one and never exceeds it. `None` leaves the bound to the mechanism, or to RFC
    /// 7252 §4.7, which has 1.
    pub nstart: Option<u16>,
    /// Whether [`Patience`] bounds how soon the endpoint despairs of a peer; if not, that is left to the mechanism alone, as
    /// in most publications.
    pub patience: bool,
    /// PROBING_RATE: a rate of non-confirmable messages, in bytes of CoAP per second, that is always allowed (RFC 7252 §4.7,
    /// draft-ietf-core-cocoa-03 §5). What exceeds it keeps the gap that the mechanism asks for, one RTO
    /// ([`Limits::non_gap`]). A destination that lets confirmable messages go unanswered ([`Patience`]) gets no more than
    /// PROBING_RATE. 0 allows no such rate: the gap of the mechanism remains.
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
    /// Destinations remembered, beside those that observe here; beyond that the least recently used that has no exchange
    /// leaves.
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
            nstart: None,
            patience: true,
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
    /// Returns how many exchanges may be outstanding to a destination of which the mechanism says `limits`.
    pub fn nstart(&self, limits: &Limits) -> u16 {
        match (self.nstart, limits.nstart) {
            (Some(configured), Some(wanted)) => configured.min(wanted),
            (configured, wanted) => configured.or(wanted).unwrap_or(1),
        }
    }

    /// Returns how long a non-confirmable message of so many bytes keeps the next one back: the shorter of what PROBING_RATE
    /// and the `gap` of the mechanism say, the longer where the destination is silent.
    pub(crate) fn non_gap(&self, bytes: usize, gap: Duration, silent: bool) -> Duration {
        match self.probing_gap(bytes) {
            Duration::ZERO => gap,
            paid if silent => paid.max(gap),
            paid => paid.min(gap),
        }
    }

    /// Returns the time in which PROBING_RATE pays for so many bytes.
    fn probing_gap(&self, bytes: usize) -> Duration {
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
    /// of the mechanism in force and the copy that [`Patience`] adds.
    pub fn max_transmit_span(&self) -> Duration {
        let max_retransmit = self.config.max_retransmit;
        let probe = self.patience().map_or(Duration::ZERO, |patience| patience.max_span(max_retransmit));
        self.controller.max_span(max_retransmit).max(probe)
    }

    /// Returns what to arm for a transmission for which the mechanism says `timeout`: the rest of MAX_TRANSMIT_WAIT for the copy
    /// after the last retransmission, and no less than RFC 7252's timeout where the peer is silent.
    pub(crate) fn patient(
        &self,
        now: Instant,
        first: Instant,
        transmission: u8,
        silent: bool,
        draw: Draw,
        timeout: Duration,
    ) -> Duration {
        let max_retransmit = self.config.max_retransmit;
        let last = transmission > max_retransmit;
        match (last || silent).then(|| self.patience()).flatten() {
            Some(patience) if last => (first + patience.max_wait(max_retransmit)).since(now),
            Some(patience) => timeout.max(patience.timeout(transmission, draw)),
            None => timeout,
        }
    }

    /// Returns what bounds how soon the endpoint despairs of a peer, if anything does. ACK_TIMEOUT is the RTO of the mechanism
    /// towards a destination that nothing is known of; a published mechanism has 2 s there.
    pub(crate) fn patience(&self) -> Option<Patience> {
        let ack_timeout = || self.controller.gauges(&self.controller.state()).rto;
        self.config.patience.then(|| Patience { ack_timeout: ack_timeout(), ..Patience::RFC7252 })
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
