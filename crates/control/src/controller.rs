//! The seam between an endpoint and a mechanism.
//!
//! The endpoint reports facts: what was sent when, what came back. The mechanism decides what a fact is worth (strong,
//! weak, nothing) and how long to wait. Neither knows the other's insides.

use core::fmt::Debug;

use crate::parameters::choice;
use crate::{Draw, Duration, Instant};

/// A congestion control mechanism with its parameters. It never changes; what it learns of a destination is in
/// [`State`](Self::State), which the caller keeps, one for each destination.
///
/// The calls of one exchange: [`on_start`](Self::on_start) as its first transmission departs,
/// [`on_retransmit`](Self::on_retransmit) as each retransmission departs, [`on_end`](Self::on_end) once. Exchanges may
/// overlap. No call panics, whatever it is given.
pub trait Controller: Debug {
    /// What is remembered of one destination between exchanges. Its size is the mechanism's RAM cost.
    type State: Copy + Debug;
    /// What is remembered of one exchange while it is under way.
    type Exchange: Copy + Debug;

    /// The state of a destination that nothing is known of.
    fn state(&self) -> Self::State;

    /// The first transmission departs. Returns the exchange and the timeout to arm.
    fn on_start(&self, state: &mut Self::State, cue: Cue) -> (Self::Exchange, Duration);

    /// The timeout passed and a retransmission departs. Returns the next timeout to arm.
    fn on_retransmit(&self, state: &mut Self::State, exchange: &mut Self::Exchange, cue: Cue) -> Duration;

    /// The exchange is over.
    fn on_end(&self, state: &mut Self::State, exchange: Self::Exchange, outcome: Outcome, cue: Cue);

    /// The longest time that can pass from the first transmission to the last of `retransmits` retransmissions, whatever
    /// the state: MAX_TRANSMIT_SPAN (RFC 7252 §4.8.2) with this mechanism's timeouts.
    fn max_span(&self, retransmits: u8) -> Duration;

    /// What the endpoint has to respect towards this destination.
    fn limits(&self, state: &Self::State) -> Limits;

    /// What the mechanism believes of this destination, for traces, metrics and reports.
    fn gauges(&self, state: &Self::State) -> Gauges;
}

/// What a controller is told with every call.
#[derive(Clone, Copy, Debug)]
pub struct Cue {
    /// The present.
    pub now: Instant,
    /// A number drawn for this step, used for whatever the step draws.
    pub draw: Draw,
    /// Exchanges to this destination whose first transmission has departed and which are not over, the present one
    /// included. An exchange that waits for its place or for its turn to depart does not count: of exchanges that the
    /// application begins at once, the first to depart has 1 here, the second 2 (draft-ietf-core-cocoa-03 §4.1).
    pub outstanding: u16,
}

/// How an exchange ended.
#[derive(Clone, Copy, Debug)]
pub enum Outcome {
    /// An acknowledgement or a response arrived.
    Acked(Sample),
    /// A Reset arrived (RFC 7252 §4.2). It is no sample, for it may come from another process than the one that answers.
    /// The preset `er-cocoa` alone takes it for one, as its code does.
    Reset,
    /// The application lost interest.
    Cancelled,
    /// The timeout after the last retransmission (MAX_RETRANSMIT) passed; without [`Limits::final_wait`] that
    /// retransmission departed.
    GivenUp,
}

/// The facts of an acknowledgement. Which kind of sample it makes is the mechanism's affair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Since the first transmission departed.
    pub since_first: Duration,
    /// Since the last transmission departed.
    pub since_last: Duration,
    /// Retransmissions made, 0 if the first transmission was the only one.
    pub retransmits: u8,
    /// The transmission that was answered, where a [`Marking`] tells.
    pub answered: Option<Answer>,
}

/// The transmission that an acknowledgement answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Its ordinal, 0 for the first.
    pub ordinal: u8,
    /// Since it departed: a round-trip time without ambiguity.
    pub since: Duration,
}

impl Sample {
    /// The sample of a mechanism that asks for no marking.
    pub const fn unmarked(since_first: Duration, since_last: Duration, retransmits: u8) -> Self {
        Self { since_first, since_last, retransmits, answered: None }
    }

    /// The round-trip time, if it is known which transmission was answered: no retransmission, or a marking.
    pub fn unambiguous(&self) -> Option<Duration> {
        match self.answered {
            Some(answer) => Some(answer.since),
            None if self.retransmits == 0 => Some(self.since_first),
            None => None,
        }
    }
}

/// What the endpoint has to respect towards one destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Exchanges that may be outstanding, if the mechanism knows better than the NSTART of 1 of RFC 7252 §4.7. It never
    /// lifts an NSTART that the application has configured: the smaller of the two holds.
    pub nstart: Option<u16>,
    /// The next confirmable message must not depart earlier (pacing); [`Instant::ZERO`] where nothing is paced.
    pub next_confirmable: Instant,
    /// Least time between two non-confirmable messages that nothing answers.
    pub non_gap: Duration,
    /// How transmissions are to be told apart.
    pub marking: Marking,
    /// Whether an answer to the last retransmission is waited for (RFC 7252 §4.2); if not, the exchange is given up as it
    /// departs.
    pub final_wait: bool,
}

impl Limits {
    /// The limits of a mechanism that has an RTO: NSTART as configured, no pacing, one non-confirmable message per RTO
    /// (draft-ietf-core-cocoa-03 §5), and not less than 3 s apart as long as no round-trip time was measured (RFC 7641
    /// §4.5.1); the last retransmission is waited for.
    pub fn with_gauges(gauges: Gauges, marking: Marking) -> Self {
        let unmeasured = if gauges.srtt.is_some() { Duration::ZERO } else { Duration::from_secs(3) };
        Self {
            nstart: None,
            next_confirmable: Instant::ZERO,
            non_gap: gauges.rto.max(unmeasured),
            marking,
            final_wait: true,
        }
    }
}

choice! {
    /// What a mechanism asks of the wire so that an answer names the transmission it answers.
    #[derive(Default, Hash)]
    pub enum Marking {
        /// Nothing: all transmissions of an exchange are the same bytes.
        #[default]
        None = "none",
        /// The ordinal is the last byte of the token (draft-ietf-core-fasor-02 §4.5), in every transmission.
        Token = "token",
        /// The ordinal is in the token of retransmissions; the first transmission carries the application's token alone.
        TokenOnRetransmit = "token-on-retransmit",
        /// The ordinal is in the Rexmit-Cnt option (draft-ietf-core-fasor-02 §4.4); 255 asks whether the peer echoes it.
        Option = "option",
        /// Every transmission has a Message ID of its own (Meng et al. 2017). Only for idempotent requests.
        FreshMessageId = "fresh-message-id",
    }
}

/// What a mechanism believes of one destination.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Gauges {
    /// The RTO: the estimate that timeouts start from, before dither; with what a mechanism keeps of a backoff. Of FASOR
    /// the fast one.
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
