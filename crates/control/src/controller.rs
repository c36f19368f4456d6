//! The interface between an endpoint and a mechanism.
//!
//! The endpoint reports facts: the times of transmissions and answers. The mechanism decides which of them are samples, and
//! how long to wait.

use core::fmt::Debug;

use crate::parameters::choice;
use crate::{Draw, Duration, Instant};

/// A congestion control mechanism with its parameters. It never changes. The caller keeps one [`State`](Self::State) for
/// each destination, which holds all that the mechanism learns.
///
/// The calls of one exchange are [`on_start`](Self::on_start) at its first transmission,
/// [`on_retransmit`](Self::on_retransmit) at each retransmission, and [`on_end`](Self::on_end) once. Exchanges may
/// overlap. No call panics, whatever its arguments.
pub trait Controller: Debug {
    /// The state of one destination, kept between exchanges. Its size is the RAM that the mechanism costs.
    type State: Copy + Debug;
    /// The state of one exchange, kept while it is under way.
    type Exchange: Copy + Debug;

    /// Returns the state of a destination before the first exchange with it.
    fn state(&self) -> Self::State;

    /// Starts an exchange, as its first transmission departs. Returns its state and the timeout to arm.
    fn on_start(&self, state: &mut Self::State, cue: Cue) -> (Self::Exchange, Duration);

    /// Backs off, as the timeout has passed and a retransmission departs. Returns the next timeout to arm. If the mechanism
    /// sets [`Limits::overtaken`], the call may come before the timeout has passed: then the exchange was overtaken.
    fn on_retransmit(&self, state: &mut Self::State, exchange: &mut Self::Exchange, cue: Cue) -> Duration;

    /// Ends an exchange and learns from its outcome.
    fn on_end(&self, state: &mut Self::State, exchange: Self::Exchange, outcome: Outcome, cue: Cue);

    /// Returns the longest time from the first transmission to the last of `retransmits` retransmissions in any state:
    /// MAX_TRANSMIT_SPAN (RFC 7252 §4.8.2) with the timeouts of this mechanism.
    fn max_span(&self, retransmits: u8) -> Duration;

    /// Returns the limits that the endpoint has to keep towards this destination.
    fn limits(&self, state: &Self::State) -> Limits;

    /// Returns the estimates for this destination, for traces, metrics and reports.
    fn gauges(&self, state: &Self::State) -> Gauges;
}

/// The arguments that come with every call: time, randomness and load.
#[derive(Clone, Copy, Debug)]
pub struct Cue {
    /// The present moment.
    pub now: Instant,
    /// The random number of this call. A call draws at most once.
    pub draw: Draw,
    /// Exchanges to this destination that are under way, the present one included. An exchange counts from the departure of
    /// its first transmission on, not while it waits for NSTART or pacing. If the application begins several at once, the
    /// first to depart has 1 here and the second 2 (draft-ietf-core-cocoa-03 §4.1).
    pub outstanding: u16,
}

/// The end of an exchange.
#[derive(Clone, Copy, Debug)]
pub enum Outcome {
    /// An acknowledgement or a response arrived.
    Acked(Sample),
    /// A Reset arrived (RFC 7252 §4.2). It is not a sample, because it may come from another process than the one that
    /// answers. The preset `er-cocoa` alone samples it, because its code does.
    Reset,
    /// The application lost interest.
    Cancelled,
    /// The timeout after the last retransmission (MAX_RETRANSMIT) passed. Without [`Limits::final_wait`] the exchange is
    /// given up at the moment of that retransmission.
    GivenUp,
}

/// The facts of an acknowledgement. The mechanism decides whether they make a strong sample, a weak one or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Time since the first transmission departed.
    pub since_first: Duration,
    /// Time since the last transmission departed.
    pub since_last: Duration,
    /// Retransmissions made; 0 if the first transmission was the only one.
    pub retransmits: u8,
    /// The transmission that was answered, if a [`Marking`] tells it.
    pub answered: Option<Answer>,
}

/// The transmission that an acknowledgement answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The ordinal of the transmission, 0 for the first.
    pub ordinal: u8,
    /// Time since that transmission departed: an unambiguous round-trip time.
    pub since: Duration,
}

impl Sample {
    /// Returns the sample of an exchange without a [`Marking`].
    pub const fn unmarked(since_first: Duration, since_last: Duration, retransmits: u8) -> Self {
        Self { since_first, since_last, retransmits, answered: None }
    }

    /// Returns the round-trip time if it is unambiguous: there was no retransmission, or a marking tells which transmission
    /// was answered.
    pub fn unambiguous(&self) -> Option<Duration> {
        match self.answered {
            Some(answer) => Some(answer.since),
            None if self.retransmits == 0 => Some(self.since_first),
            None => None,
        }
    }
}

/// The limits that an endpoint has to keep towards one destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of outstanding exchanges, where the mechanism replaces the NSTART of 1 of RFC 7252 §4.7. If the
    /// application has configured an NSTART, the smaller of the two holds.
    pub nstart: Option<u16>,
    /// Earliest departure of the next confirmable message (pacing); [`Instant::ZERO`] without pacing.
    pub next_confirmable: Instant,
    /// An exchange is lost, and is retransmitted at once, if its last transmission departed at least this long before the
    /// last transmission of an exchange that is answered without ambiguity. `None`: timeouts alone find losses.
    pub overtaken: Option<Duration>,
    /// Least time between two non-confirmable messages that nothing answers.
    pub non_gap: Duration,
    /// The marking of transmissions.
    pub marking: Marking,
    /// Whether the endpoint waits for an answer to the last retransmission (RFC 7252 §4.2). If not, it gives the exchange up
    /// as that retransmission departs.
    pub final_wait: bool,
}

impl Limits {
    /// Returns the limits of a mechanism that has an RTO. NSTART and pacing are left to the endpoint, and the last
    /// retransmission is waited for. Non-confirmable messages are an RTO apart (draft-ietf-core-cocoa-03 §5), and 3 s at
    /// least until a round-trip time is measured (RFC 7641 §4.5.1).
    pub fn with_gauges(gauges: Gauges, marking: Marking) -> Self {
        let unmeasured = if gauges.srtt.is_some() { Duration::ZERO } else { Duration::from_secs(3) };
        Self {
            nstart: None,
            next_confirmable: Instant::ZERO,
            overtaken: None,
            non_gap: gauges.rto.max(unmeasured),
            marking,
            final_wait: true,
        }
    }
}

choice! {
    /// The way in which a transmission carries its ordinal, so that an answer tells which transmission it answers.
    #[derive(Default, Hash)]
    pub enum Marking {
        /// No marking: all transmissions of an exchange are the same bytes.
        #[default]
        None = "none",
        /// The ordinal is the last byte of the token (draft-ietf-core-fasor-02 §4.5), in every transmission.
        Token = "token",
        /// The ordinal is in the token of retransmissions. The first transmission carries the application's token alone.
        TokenOnRetransmit = "token-on-retransmit",
        /// The ordinal is in the Rexmit-Cnt option (draft-ietf-core-fasor-02 §4.4). The value 255 asks whether the peer
        /// echoes it.
        Option = "option",
        /// Every transmission has a Message ID of its own (Meng et al. 2017). It suits idempotent requests alone.
        FreshMessageId = "fresh-message-id",
    }
}

/// The estimates of a mechanism for one destination.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gauges {
    /// The RTO that the next exchange starts from, before dither. It includes a kept backoff. FASOR has its fast RTO here.
    pub rto: Duration,
    /// The smoothed round-trip time, once measured.
    pub srtt: Option<Duration>,
    /// The variation of the round-trip time, once measured.
    pub rttvar: Option<Duration>,
    /// The pacing rate in messages per 1000 s, where the mechanism has one.
    pub rate_per_ks: Option<u32>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn non_confirmable_messages_are_an_rto_apart_and_3_s_until_something_is_measured() {
        let gap = |rto, srtt| {
            let gauges = Gauges { rto: Duration::from_secs(rto), srtt, ..Gauges::default() };
            Limits::with_gauges(gauges, Marking::None).non_gap
        };
        assert_eq!(gap(2, None), Duration::from_secs(3));
        assert_eq!(gap(8, None), Duration::from_secs(8));
        assert_eq!(gap(2, Some(Duration::from_secs(1))), Duration::from_secs(2));
    }
}
