//! The interface between an endpoint and a mechanism.
//!
//! The endpoint reports facts: the times of transmissions and answers. The mechanism decides which times count as
//! samples, and how long to wait.

use core::fmt::Debug;

use crate::parameters::choice;
use crate::{Draw, Duration, Instant};

/// A congestion control mechanism with its parameters. The value itself never changes. The caller keeps one
/// [`State`](Self::State) for each destination, which holds all that the mechanism learns.
///
/// The calls of one exchange are [`on_start`](Self::on_start) at its first transmission,
/// [`on_retransmit`](Self::on_retransmit) at each retransmission, and [`on_end`](Self::on_end) once at the end.
/// Exchanges may overlap. No call panics, whatever its arguments.
pub trait Controller: Debug {
    /// The state of one destination, kept between exchanges. Its size is the RAM that the mechanism takes for each
    /// destination.
    type State: Copy + Debug;
    /// The state of one exchange, kept until the exchange ends.
    type Exchange: Copy + Debug;

    /// Returns the state of a destination before the first exchange with it.
    fn state(&self) -> Self::State;

    /// Starts an exchange, as its first transmission departs. Returns its state and the timeout to arm.
    fn on_start(&self, state: &mut Self::State, cue: Cue) -> (Self::Exchange, Duration);

    /// Lengthens the timeout of an exchange as its retransmission departs, because no answer came in time. Returns the
    /// next timeout to arm. If the mechanism sets [`Limits::overtaken`], the call may come before the timeout has
    /// passed, because later exchanges were answered first.
    fn on_retransmit(&self, state: &mut Self::State, exchange: &mut Self::Exchange, cue: Cue) -> Duration;

    /// Ends an exchange and learns from its outcome.
    fn on_end(&self, state: &mut Self::State, exchange: Self::Exchange, outcome: Outcome, cue: Cue);

    /// Returns MAX_TRANSMIT_SPAN (RFC 7252 §4.8.2) with the timeouts of this mechanism: the longest possible time from
    /// the first transmission of an exchange to its last retransmission, if there are `retransmits` of them.
    fn max_span(&self, retransmits: u8) -> Duration;

    /// Returns the limits that the endpoint must keep towards this destination.
    fn limits(&self, state: &Self::State) -> Limits;

    /// Returns the estimates for this destination, for traces, metrics and reports.
    fn gauges(&self, state: &Self::State) -> Gauges;
}

/// The arguments that come with every call: time, randomness and load.
#[derive(Clone, Copy, Debug)]
pub struct Cue {
    /// The current time.
    pub now: Instant,
    /// The random number of this call. The mechanism uses it at most once.
    pub draw: Draw,
    /// The number of exchanges to this destination that have begun and not ended, including this one. An exchange is
    /// counted once its first transmission has departed, and not while NSTART or pacing delays it. If the application
    /// begins several at once, the first to depart has 1 here and the second 2 (draft-ietf-core-cocoa-03 §4.1).
    pub outstanding: u16,
}

/// How an exchange ended.
#[derive(Clone, Copy, Debug)]
pub enum Outcome {
    /// An acknowledgement or a response arrived.
    Acked(Sample),
    /// A Reset arrived (RFC 7252 §4.2). Its round-trip time is not a sample, because a Reset may come from another
    /// process than answers do. Only the preset `er-cocoa` treats it as a sample, as its published code does.
    Reset,
    /// The application cancelled the exchange.
    Cancelled,
    /// The timeout after the last retransmission (MAX_RETRANSMIT) passed. Without [`Limits::final_wait`] the endpoint
    /// gives the exchange up as soon as that retransmission departs.
    GivenUp,
}

/// The measurements of an acknowledged exchange. The mechanism decides whether they make a strong sample, a weak one or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Time since the first transmission departed.
    pub since_first: Duration,
    /// Time since the last transmission departed.
    pub since_last: Duration,
    /// The number of retransmissions; 0 if the first transmission was the only one.
    pub retransmits: u8,
    /// The transmission that was answered; `None` if no [`Marking`] identifies it.
    pub answered: Option<Answer>,
}

/// The transmission that was answered, and the time from its departure to the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The ordinal of the transmission, 0 for the first.
    pub ordinal: u8,
    /// Time from the departure of the answered transmission to the answer: an unambiguous round-trip time.
    pub since: Duration,
}

impl Sample {
    /// Returns the sample of an exchange whose transmissions have no [`Marking`].
    pub const fn unmarked(since_first: Duration, since_last: Duration, retransmits: u8) -> Self {
        Self { since_first, since_last, retransmits, answered: None }
    }

    /// Returns the round-trip time if it is unambiguous, and `None` otherwise. It is unambiguous if there was no
    /// retransmission, or if a marking identifies the transmission that was answered.
    pub fn unambiguous(&self) -> Option<Duration> {
        match self.answered {
            Some(answer) => Some(answer.since),
            // Without a copy there is nothing that the answer could be confused with.
            None if self.retransmits == 0 => Some(self.since_first),
            None => None,
        }
    }
}

/// The limits that an endpoint must keep towards one destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of outstanding exchanges, in place of the NSTART of 1 of RFC 7252 §4.7; `None` if the mechanism
    /// sets no limit of its own. If the application has configured an NSTART, the smaller of the two applies.
    pub nstart: Option<u16>,
    /// Earliest departure of the next confirmable message (pacing); [`Instant::ZERO`] if the mechanism does not pace.
    pub next_confirmable: Instant,
    /// An exchange counts as lost, and is retransmitted at once, if another transmission that departed more than this
    /// much later was answered without ambiguity. `None`: only timeouts detect losses.
    pub overtaken: Option<Duration>,
    /// Least time between the departures of two non-confirmable messages that are not answered.
    pub non_gap: Duration,
    /// How transmissions carry their ordinal, the number of the transmission within its exchange.
    pub marking: Marking,
    /// True if the endpoint waits for an answer to the last retransmission (RFC 7252 §4.2). If not, it gives the exchange up
    /// as that retransmission departs.
    pub final_wait: bool,
}

impl Limits {
    /// Returns the limits of a mechanism that has an RTO and no window or pacing of its own. The endpoint applies its
    /// own NSTART, and waits for an answer to the last retransmission. Non-confirmable messages depart at least an RTO
    /// apart (draft-ietf-core-cocoa-03 §5), and at least 3 s until a round-trip time is measured (RFC 7641 §4.5.1).
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
    /// How a transmission carries its ordinal, so that an answer identifies the transmission that it answers.
    #[derive(Default, Hash)]
    pub enum Marking {
        /// No marking: all transmissions of an exchange are the same bytes.
        #[default]
        None = "none",
        /// The ordinal is the last byte of the token (draft-ietf-core-fasor-02 §4.5), in every transmission.
        Token = "token",
        /// The ordinal is in the token of retransmissions. The first transmission carries the token of the application without
        /// an ordinal.
        TokenOnRetransmit = "token-on-retransmit",
        /// The ordinal is in the Rexmit-Cnt option (draft-ietf-core-fasor-02 §4.4). The value 255 asks whether the peer
        /// echoes the option.
        Option = "option",
        /// Every transmission has its own Message ID (Meng et al. 2017). This is only suitable for idempotent requests.
        FreshMessageId = "fresh-message-id",
    }
}

/// The estimates of a mechanism for one destination.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gauges {
    /// The RTO that the next exchange starts from, before dither. It includes a backoff that an earlier exchange left.
    /// For FASOR it is the fast RTO.
    pub rto: Duration,
    /// The smoothed round-trip time; `None` before the first sample.
    pub srtt: Option<Duration>,
    /// RTTVAR, the variation of the round-trip time; `None` before the first sample.
    pub rttvar: Option<Duration>,
    /// The pacing rate in messages per 1000 s; `None` if the mechanism has no rate.
    pub rate_per_ks: Option<u32>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn non_confirmable_messages_are_an_rto_apart_and_3_s_before_the_first_sample() {
        let gap = |rto, srtt| {
            let gauges = Gauges { rto: Duration::from_secs(rto), srtt, ..Gauges::default() };
            Limits::with_gauges(gauges, Marking::None).non_gap
        };
        assert_eq!(gap(2, None), Duration::from_secs(3));
        assert_eq!(gap(8, None), Duration::from_secs(8));
        assert_eq!(gap(2, Some(Duration::from_secs(1))), Duration::from_secs(2));
    }
}
