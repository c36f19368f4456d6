//! The structs of C that pass facts to a mechanism, and limits and gauges from it.
//!
//! Every field is an integer, so any bits are a valid value.

use coapace_control::{self as control, Answer, Draw, Duration, Instant, Marking};

use crate::Status;

/// The Rust side of `struct coapace_cue`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Cue {
    /// The current time, in microseconds since an origin that the caller chooses.
    pub now_us: u64,
    /// The random number of this call, in units of 2⁻³².
    pub draw: u32,
    /// The number of exchanges to this destination that have not ended, including this one.
    pub outstanding: u16,
}

impl From<Cue> for control::Cue {
    fn from(cue: Cue) -> Self {
        Self {
            now: Instant::from_micros(cue.now_us),
            draw: Draw::from_bits(cue.draw),
            outstanding: cue.outstanding,
        }
    }
}

/// The Rust side of `struct coapace_sample`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Sample {
    /// Time since the first transmission departed, in microseconds.
    pub since_first_us: u64,
    /// Time since the last transmission departed, in microseconds.
    pub since_last_us: u64,
    /// Time since the transmission that was answered departed, in microseconds.
    pub since_answered_us: u64,
    /// The number of retransmissions.
    pub retransmits: u8,
    /// Not zero if a marking identifies the transmission that was answered.
    pub has_answered: u8,
    /// The ordinal of the transmission that was answered, 0 for the first.
    pub answered: u8,
}

/// The Rust side of `enum coapace_end`.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
pub enum End {
    /// An acknowledgement or a response arrived.
    Acked = 1,
    /// A Reset arrived.
    Reset = 2,
    /// The application cancelled the exchange.
    Cancelled = 3,
    /// The timeout after the last retransmission passed.
    GivenUp = 4,
}

/// The Rust side of `struct coapace_outcome`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    /// The measurements of an acknowledged exchange; unused otherwise.
    pub sample: Sample,
    /// The number of an [`End`]; C may pass an invalid one.
    pub end: u8,
}

impl Outcome {
    /// Returns the outcome of an exchange, as C reports it.
    ///
    /// # Safety
    /// `outcome` is null or points to an outcome. Its sample must be written only if its `end` is [`End::Acked`].
    pub(crate) unsafe fn from_c(outcome: *const Self) -> Result<control::Outcome, Status> {
        const ACKED: u8 = End::Acked as u8;
        const RESET: u8 = End::Reset as u8;
        const CANCELLED: u8 = End::Cancelled as u8;
        const GIVEN_UP: u8 = End::GivenUp as u8;
        if outcome.is_null() {
            return Err(Status::NullPointer);
        }
        // SAFETY: not null, so `end` was written.
        match unsafe { (*outcome).end } {
            // SAFETY: the sample of an acknowledgement was written.
            ACKED => Ok(control::Outcome::Acked(unsafe { (*outcome).sample }.into())),
            RESET => Ok(control::Outcome::Reset),
            CANCELLED => Ok(control::Outcome::Cancelled),
            GIVEN_UP => Ok(control::Outcome::GivenUp),
            _ => Err(Status::BadOutcome),
        }
    }
}

impl From<Sample> for control::Sample {
    fn from(sample: Sample) -> Self {
        let since = Duration::from_micros(sample.since_answered_us);
        Self {
            since_first: Duration::from_micros(sample.since_first_us),
            since_last: Duration::from_micros(sample.since_last_us),
            retransmits: sample.retransmits,
            answered: (sample.has_answered != 0).then_some(Answer { ordinal: sample.answered, since }),
        }
    }
}

/// The Rust side of `struct coapace_limits`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits {
    /// Earliest departure of the next confirmable message, in microseconds since the caller's origin; 0 without pacing.
    pub next_confirmable_us: u64,
    /// Least time between two unanswered non-confirmable messages, in microseconds.
    pub non_gap_us: u64,
    /// An unanswered exchange counts as lost if another exchange that departed this much later was answered, in
    /// microseconds; 0 if only timeouts detect losses.
    pub overtaken_us: u32,
    /// Maximum number of outstanding exchanges, if `has_nstart`.
    pub nstart: u16,
    /// 1 if the mechanism replaces NSTART, else 0.
    pub has_nstart: u8,
    /// How transmissions are marked, an `enum coapace_marking`.
    pub marking: u8,
}

impl From<control::Limits> for Limits {
    fn from(limits: control::Limits) -> Self {
        Self {
            next_confirmable_us: limits.next_confirmable.as_micros(),
            non_gap_us: limits.non_gap.as_micros(),
            overtaken_us: limits
                .overtaken
                // 2³² µs are 71 minutes, which is longer than any timeout.
                .map_or(0, |span| u32::try_from(span.as_micros()).unwrap_or(u32::MAX)),
            nstart: limits.nstart.unwrap_or(0),
            has_nstart: limits.nstart.is_some().into(),
            marking: match limits.marking {
                Marking::None => 0,
                Marking::Token => 1,
                Marking::TokenOnRetransmit => 2,
                Marking::Option => 3,
                Marking::FreshMessageId => 4,
            },
        }
    }
}

/// The Rust side of `struct coapace_gauges`. A missing value is 0, and its flag is 0.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Gauges {
    /// The RTO, in microseconds.
    pub rto_us: u64,
    /// The smoothed round-trip time, in microseconds.
    pub srtt_us: u64,
    /// The variation of the round-trip time, in microseconds.
    pub rttvar_us: u64,
    /// The pacing rate, in messages per 1000 s.
    pub rate_per_ks: u32,
    /// 1 if `srtt_us` has a value, else 0.
    pub has_srtt: u8,
    /// 1 if `rttvar_us` has a value, else 0.
    pub has_rttvar: u8,
    /// 1 if `rate_per_ks` has a value, else 0.
    pub has_rate: u8,
}

impl From<control::Gauges> for Gauges {
    fn from(gauges: control::Gauges) -> Self {
        let micros = |span: Option<Duration>| span.map_or(0, Duration::as_micros);
        Self {
            rto_us: gauges.rto.as_micros(),
            srtt_us: micros(gauges.srtt),
            rttvar_us: micros(gauges.rttvar),
            rate_per_ks: gauges.rate_per_ks.unwrap_or(0),
            has_srtt: gauges.srtt.is_some().into(),
            has_rttvar: gauges.rttvar.is_some().into(),
            has_rate: gauges.rate_per_ks.is_some().into(),
        }
    }
}
