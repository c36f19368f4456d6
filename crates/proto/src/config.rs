//! The parameters of an endpoint.

use coapace_control::{Controller, Draw, Duration, Instant, Limits};

use crate::Patience;

/// Transmission parameters (RFC 7252 §4.8) and limits of an endpoint.
///
/// ACK_TIMEOUT and ACK_RANDOM_FACTOR are parameters of the mechanism.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// MAX_RETRANSMIT: retransmissions before an exchange is given up.
    pub max_retransmit: u8,
    /// NSTART: the maximum number of outstanding exchanges with one peer. Further exchanges wait. A mechanism can lower this
    /// limit ([`Limits::nstart`]), but not raise it. With `None`, only the limit of the mechanism counts; a mechanism without
    /// a limit has 1 (RFC 7252 §4.7).
    pub nstart: Option<u16>,
    /// True if [`Patience`] keeps the endpoint from giving up too early. Otherwise only the mechanism decides when to give up,
    /// as in most publications.
    pub patience: bool,
    /// PROBING_RATE: a rate of non-confirmable messages that is always allowed, in bytes of CoAP per second (RFC 7252
    /// §4.7, draft-ietf-core-cocoa-03 §5).
    ///
    /// Above this rate, two messages are at least the gap of the mechanism apart, usually one RTO
    /// ([`Limits::non_gap`]). A silent peer ([`Patience`]) gets no more than PROBING_RATE. With 0 only the gap of the
    /// mechanism counts.
    pub probing_rate: u32,
    /// The number of consecutive messages to one peer of which at least one is confirmable (draft-ietf-core-cocoa-03 §5
    /// requires at least two in any sixteen). With 8, a non-confirmable message after seven others is sent as
    /// confirmable. Requests and notifications count; retransmissions and responses do not. 0 changes no message.
    pub confirmable_every: u8,
    /// MAX_LATENCY: the longest time a datagram takes from one end to the other.
    pub max_latency: Duration,
    /// PROCESSING_DELAY: the time a node takes from receiving a confirmable message to acknowledging it.
    pub processing_delay: Duration,
    /// The time to wait for the response to a request that is acknowledged or non-confirmable.
    pub response_timeout: Duration,
    /// The critical options that the application recognises in responses. A response with another critical option is
    /// rejected ([`Event::Rejected`](crate::Event::Rejected), RFC 7252 §5.4.1). `None` rejects no response, for an
    /// application that forwards responses unchanged.
    pub recognised: Option<&'static [u16]>,
    /// The maximum number of exchanges at once, waiting ones included.
    pub max_exchanges: u32,
    /// The maximum number of peers to remember, in addition to observers. Beyond that, the least recently used peer
    /// without an exchange is dropped.
    pub max_peers: u32,
    /// The length of the longest token that a request may have, bytes. A request with a longer one is rejected. Tokens
    /// of more than 8 bytes are an extension of RFC 8974. The endpoint keeps at most
    /// [`max_observers`](Self::max_observers) + [`max_peers`](Self::max_peers) tokens of more than 8 bytes.
    pub max_token: u16,
    /// The maximum number of observers that may be registered here.
    pub max_observers: u32,
    /// The maximum number of observations of other endpoints and requests to groups that this endpoint may have open.
    pub max_listeners: u32,
    /// The maximum number of acknowledgements, Resets and responses that may wait to be sent.
    pub max_replies: u32,
    /// The maximum number of messages to remember for deduplication, in each of two tables: repeatable requests, and
    /// all other messages. With 0 every copy is delivered again.
    pub max_deduplicated: u32,
    /// The maximum number of peers whose last request is remembered, so that a copy of it is not answered while the
    /// first answer may still be travelling, for at most two copies in a row. 0 answers every copy (RFC 7252 §4.5).
    pub max_sluiced: u32,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            max_retransmit: 4,
            nstart: None,
            patience: true,
            probing_rate: 1,
            confirmable_every: 8,
            // RFC 7252 §4.8.2, where PROCESSING_DELAY is ACK_TIMEOUT.
            max_latency: Duration::from_secs(100),
            processing_delay: Duration::from_secs(2),
            // EXCHANGE_LIFETIME with these parameters (RFC 7252 §4.8.2).
            response_timeout: Duration::from_secs(247),
            recognised: Some(&crate::block::OPTIONS),
            max_exchanges: 64,
            max_peers: 64,
            max_token: 8,
            max_observers: 64,
            max_listeners: 64,
            max_replies: 64,
            max_deduplicated: 256,
            max_sluiced: 0,
        }
    }
}

impl Config {
    /// Returns how many exchanges may be outstanding to a peer for which the mechanism has these `limits`.
    pub fn nstart(&self, limits: &Limits) -> u16 {
        match (self.nstart, limits.nstart) {
            (Some(configured), Some(wanted)) => configured.min(wanted),
            (configured, wanted) => configured.or(wanted).unwrap_or(1),
        }
    }

    /// Returns the least time between a non-confirmable message of this length and the next one. It is the shorter of the times
    /// required by PROBING_RATE and by the `gap` of the mechanism; the longer one if the peer is silent.
    pub(crate) fn non_gap(&self, bytes: usize, gap: Duration, silent: bool) -> Duration {
        match self.probing_gap(bytes) {
            Duration::ZERO => gap,
            paid if silent => paid.max(gap),
            paid => paid.min(gap),
        }
    }

    /// Returns the time in which PROBING_RATE allows this number of bytes.
    fn probing_gap(&self, bytes: usize) -> Duration {
        match self.probing_rate {
            0 => Duration::ZERO,
            rate => Duration::from_micros((bytes as u64).saturating_mul(1_000_000).div_ceil(rate.into())),
        }
    }
}

/// The mechanisms and the other parameters of an endpoint. Any number of endpoints may share one setup.
#[derive(Debug)]
pub struct Setup<C> {
    /// The congestion control.
    pub controller: C,
    /// The congestion control for requests that transfer a part of a body
    /// ([`Endpoint::request_part`](crate::Endpoint::request_part)). It decides how many such requests may be
    /// outstanding. With `None` they are sent like all other requests.
    pub bulk: Option<C>,
    /// The parameters besides the congestion control.
    pub config: Config,
}

impl<C: Controller> Setup<C> {
    /// Returns MAX_TRANSMIT_SPAN: the longest time from the first transmission to the last retransmission
    /// (RFC 7252 §4.8.2). It counts the timeouts of this mechanism and the copy that [`Patience`] adds.
    pub fn max_transmit_span(&self) -> Duration {
        let max_retransmit = self.config.max_retransmit;
        let probe = self.patience().map_or(Duration::ZERO, |patience| patience.max_span(max_retransmit));
        self.controller.max_span(max_retransmit).max(probe)
    }

    /// Returns the timeout to arm for a transmission for which the mechanism requests `timeout`. The copy that [`Patience`]
    /// adds gets the rest of MAX_TRANSMIT_WAIT. A transmission to a silent peer gets at least the timeout of RFC 7252.
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
            // The last copy may be answered until MAX_TRANSMIT_WAIT has passed since the first (RFC 7252 §4.8.2).
            Some(patience) if last => {
                let rest = (first + patience.max_wait(max_retransmit)).since(now);
                rest.max(patience.last_wait(max_retransmit))
            }
            Some(patience) => timeout.max(patience.timeout(transmission, draw)),
            None => timeout,
        }
    }

    /// Returns the timer that keeps the endpoint from giving up too early; `None` if [`Config::patience`] is false. Its
    /// ACK_TIMEOUT is the mechanism's RTO for an unknown peer, which is 2 s for published mechanisms.
    pub(crate) fn patience(&self) -> Option<Patience> {
        let ack_timeout = || self.controller.gauges(&self.controller.state()).rto;
        self.config.patience.then(|| Patience { ack_timeout: ack_timeout(), ..Patience::RFC7252 })
    }

    /// Returns EXCHANGE_LIFETIME: the time from the first transmission of a confirmable message until its
    /// Message ID may be used again (RFC 7252 §4.8.2).
    pub fn exchange_lifetime(&self) -> Duration {
        self.max_transmit_span() + self.config.max_latency.doubled() + self.config.processing_delay
    }

    /// Returns NON_LIFETIME: the time until the Message ID of a non-confirmable message may be used again
    /// (RFC 7252 §4.8.2).
    pub fn non_lifetime(&self) -> Duration {
        self.max_transmit_span() + self.config.max_latency
    }
}
