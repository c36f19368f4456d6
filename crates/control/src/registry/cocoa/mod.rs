//! `cocoa`: CoCoA, and its variants made of the same parts: `cocoa0`, `cocoa-plus`, `cocoa-strong`,
//! `fullbackoff1-cocoa`, `fullbackoff2-cocoa`, `gsrtc` and `cocoa-i`. `draft.rs` has the mechanism of the draft,
//! `variants.rs` the steps that differ in variants, and `entries.rs` the entries of the variants, with their sources
//! and differences.
//!
//! **Source.** draft-ietf-core-cocoa-03 (2018, expired).
//!
//! **Idea.** Retransmitted exchanges are samples, too, with less weight: a strong and a weak estimator are blended into one
//! RTO. The backoff factor is large where the RTO is short, and small where it is long. An RTO that no sample renews ages
//! towards the band of 1 to 3 s.
//!
//! **Readings where the draft is open**
//! * The backoff factor is chosen once for an exchange, from the RTO before dither. The pseudo-code of §4.2.1 chooses it at
//!   each step (`vbf_on=current`). From 2 s on that is more aggressive than RFC 7252: it gives up after 34.5 s, not 62 s.
//! * An RTO of exactly 1 s or 3 s lies in the band.
//! * Only the first timeout of an exchange is dithered. Read literally, the draft dithers retransmissions too
//!   (`redither=on`).
//! * The truncation at 32 s applies to backoffs. A first timeout may be longer. If so, later timeouts stay the same.
//! * The overall RTO ages, cumulatively, before an exchange starts, and only after the first sample.
//! * Before the first sample, the k-th of several outstanding exchanges waits k times the RTO, and the RTO does not
//!   change. An exchange is outstanding from the departure of its first transmission on.
//! * A Reset is not a sample.
//! * A backoff is forgotten when its exchange ends, given up or not.
//!
//! **Differences from the source**
//! * The RTO is 50 ms at least (`min_rto`). The draft has no lower bound, and the presets have none or their own.
//! * The RTO is 60 s at most (`max_rto`). The draft has no upper bound of the estimate. RFC 8085 §3.1.1 allows this one.
//!
//! **Unsafe as published**
//! * Weak samples are ambiguous. RFC 8085 §3.1.1 forbids their use. A lost answer makes the RTO grow, and a late answer
//!   makes it shrink. This mechanism has the same problem.
//! * MAX_TRANSMIT_SPAN is 128 s, and here up to 240 s, where RFC 7252 has 45 s.

mod draft;
mod entries;
mod exchange;
#[cfg(test)]
mod tests;
mod variants;

pub use draft::CocoaState;
pub(crate) use entries::*;
pub use exchange::CocoaExchange;
pub use variants::*;

use crate::estimator::{GRANULARITY, MIN_RTO, UNBOUNDED};
use crate::parameters::{Switch, parameters};
use crate::{Duration, Marking, Ratio};

parameters! {
    /// CoCoA, with a strong and a weak estimator.
    pub struct Cocoa {
        /// RTO before the first sample, draft-ietf-core-cocoa-03 §4.1.
        initial_rto: Duration = Duration::from_secs(2),
        /// Lower bound of the RTO, 50 ms by default: a quarter of the 200 ms of Linux, and longer than delays of
        /// schedulers and clock ticks of 10 ms. The draft has no lower bound. A long RTO ages towards 2 s, even if that
        /// is below this bound.
        min_rto: Duration = MIN_RTO,
        /// Lower bound of a first timeout. The draft has none; Californium 3 has 500 ms.
        min_timeout: Duration = UNBOUNDED,
        /// Upper bound of the RTO. A first timeout is bounded by the longer of `max_rto` and `max_timeout`. The draft
        /// has no upper bound; RFC 8085 §3.1.1 asks for 60 s at least. A longer value counts as 268 s.
        max_rto: Duration = Duration::from_secs(60),
        /// Upper bound of an estimate before it is blended into the RTO. The draft has none; er-cocoa has 60 s.
        max_estimate: Duration = Duration::from_secs(268),
        /// Upper bound of a backoff, draft-ietf-core-cocoa-03 §4.2.1. A first timeout above it is not lengthened. A
        /// longer value counts as 268 s.
        max_timeout: Duration = Duration::from_secs(32),
        /// ACK_RANDOM_FACTOR: the first timeout is random, U(RTO, ACK_RANDOM_FACTOR·RTO), draft-ietf-core-cocoa-03
        /// §4.2.1.
        ack_random_factor: Ratio = Ratio::new(3, 2),
        /// Whether the timeout of each retransmission is dithered, too. The backoff then grows from the timeout before
        /// dither.
        redither: Switch = Switch::Off,
        /// K of the strong estimator, the weight of RTTVAR, draft-ietf-core-cocoa-03 §4.2.
        k_strong: u8 = 4,
        /// K of the weak estimator, the weight of RTTVAR, draft-ietf-core-cocoa-03 §4.2.
        k_weak: u8 = 1,
        /// Weight of a new strong estimate in the RTO, draft-ietf-core-cocoa-03 §4.2.
        strong_weight: Ratio = Ratio::new(1, 2),
        /// Weight of a new weak estimate in the RTO, draft-ietf-core-cocoa-03 §4.2.
        weak_weight: Ratio = Ratio::new(1, 4),
        /// Weight of a new strong estimate: fixed, or growing while strong samples follow each other.
        weighting: Weighting = Weighting::Fixed,
        /// Number of retransmissions up to which an exchange is still a weak sample, draft-ietf-core-cocoa-03 §4.2.
        max_weak_n: u8 = 2,
        /// Gain of SRTT, RFC 6298 §2.3.
        srtt_gain: Ratio = Ratio::new(1, 8),
        /// Gain of RTTVAR, RFC 6298 §2.3.
        rttvar_gain: Ratio = Ratio::new(1, 4),
        /// Backoff factor of an RTO below `vbf_low`, draft-ietf-core-cocoa-03 §4.2.1.
        vbf_small: Ratio = Ratio::new(3, 1),
        /// Backoff factor of an RTO from `vbf_low` to `vbf_high`, draft-ietf-core-cocoa-03 §4.2.1.
        vbf_middle: Ratio = Ratio::new(2, 1),
        /// Backoff factor of an RTO above `vbf_high`, draft-ietf-core-cocoa-03 §4.2.1.
        vbf_large: Ratio = Ratio::new(3, 2),
        /// RTO below which the backoff factor is `vbf_small` and an RTO ages upwards, draft-ietf-core-cocoa-03 §4.2.1.
        vbf_low: Duration = Duration::from_secs(1),
        /// RTO above which the backoff factor is `vbf_large` and an RTO ages downwards, draft-ietf-core-cocoa-03 §4.2.1.
        vbf_high: Duration = Duration::from_secs(3),
        /// Duration that decides the backoff factor, draft-ietf-core-cocoa-03 §4.2.1.
        vbf_on: VbfOn = VbfOn::Initial,
        /// Whether the band between `vbf_low` and `vbf_high` is fixed or moves with the strong estimate.
        band: Band = Band::Fixed,
        /// Rule by which an RTO ages if no new samples come, draft-ietf-core-cocoa-03 §4.3.
        ageing: Ageing = Ageing::Draft03,
        /// Effect on the RTO of an exchange that was answered after a retransmission, or given up.
        after_backoff: AfterBackoff = AfterBackoff::Forget,
        /// The strong estimator is forgotten after more retransmissions than this since the last strong sample; 0 means
        /// never.
        forget_strong_after: u8 = 0,
        /// How the weak estimator changes if an exchange is given up.
        give_up: SampleOfGiveUp = SampleOfGiveUp::Keep,
        /// Whether a Reset is a sample like an acknowledgement.
        sample_reset: Switch = Switch::Off,
        /// How transmissions carry their ordinal.
        marking: Marking = Marking::None,
        /// Estimator that takes the sample if a marking shows that a retransmission was answered.
        marked_retransmission: EstimatorOf = EstimatorOf::Strong,
        /// G, the granularity of the clock and the lower bound of K·RTTVAR, RFC 6298 §2.3.
        granularity: Duration = GRANULARITY,
        /// Unit that estimates are rounded to and timeouts are rounded down to; 1us means no rounding.
        tick: Duration = Duration::from_micros(1),
        /// Whether the endpoint waits for an answer to the last retransmission, RFC 7252 §4.2.
        final_wait: Switch = Switch::On,
    }
    presets {
        /// The rules of draft-ietf-core-cocoa-03. Unsafe as published: no lower bound of the RTO, so that on a short path a
        /// delay of a scheduler counts as a loss.
        "draft-03" => |_| Self::PUBLISHED,
        /// The pseudo-code of draft-ietf-core-cocoa-03 §4.2.1 to the letter: the backoff factor is chosen at each
        /// retransmission, and each timeout is dithered. Unsafe like `draft-03`, and more aggressive than RFC 7252 from
        /// 2 s on.
        "draft-literal" => |_| Self { vbf_on: VbfOn::Current, redither: Switch::On, ..Self::PUBLISHED },
        /// The libcoap of the FASOR experiments (Raitahila 2019): the draft without ageing, and with a backoff factor
        /// that depends on the current timeout. Unsafe like `draft-literal`.
        "libcoap-2019" => |_| Self { vbf_on: VbfOn::Current, ageing: Ageing::Off, ..Self::PUBLISHED },
        /// Betzler et al. 2015 with the printed gains, 1/4 of SRTT and 1/8 of RTTVAR, and no lower bound of the RTO:
        /// `cocoa0` remains `cocoa0`, and any other mechanism becomes `cocoa-plus`. Unsafe like `draft-03`.
        "paper-2015" => |old| Self {
            min_rto: UNBOUNDED,
            srtt_gain: Ratio::new(1, 4),
            rttvar_gain: Ratio::new(1, 8),
            ..if matches!(old.ageing, Ageing::Cocoa0) { Self::COCOA0 } else { Self::COCOA_PLUS }
        },
        /// GSRTC built on Fullbackoff2 (Rathod 2022 §5.2.1 and §5.3.3): the RTO becomes the last timeout of a
        /// retransmitted exchange if that is longer. The text has this rule, and the listing of Algorithm 2 omits it.
        "gsrtc-on-fullbackoff2" => |_| Self { weighting: Weighting::Gsrtc, ..Self::FULLBACKOFF2 },
        /// Californium 1.0 to 2.8: the gains of SRTT and RTTVAR swapped, an RTO of up to 32 s, a backoff of up to 60 s,
        /// and an RTO that ages past the band. Unsafe like `draft-03`.
        "californium-2" => |old| Self { max_weak_n: if old.max_weak_n == 0 { 0 } else { 2 }, ..Self::CALIFORNIUM2 },
        /// Californium 3: the gains of SRTT and RTTVAR swapped, a granularity of 100 ms, an RTO of up to 32 s, timeouts
        /// of 0.5 s to 60 s, the backoff factor chosen from the dithered timeout, and ageing that takes effect one
        /// exchange later.
        "californium-3" => |old| Self {
            min_timeout: Duration::from_millis(500),
            max_weak_n: if old.max_weak_n == 0 { 0 } else { 2 },
            vbf_on: VbfOn::Dithered,
            ageing: Ageing::Californium3,
            granularity: Duration::from_millis(100),
            ..Self::CALIFORNIUM2
        },
        /// Betzler's er-cocoa for Contiki, behind many results from Cooja: 3/4 for a new weak estimate instead of 1/4,
        /// a weak sample of any exchange, given up or not, a Reset sampled like an acknowledgement, estimates bounded
        /// by 60 s before they are blended, a factor of 2.5 below 1 s, timeouts without a bound, the strong estimator
        /// forgotten after more than three retransmissions. Unsafe as published: timeouts have neither a lower nor an
        /// upper bound. Not reproduced: ticks of 1/128 s, and before the first sample a second dither on the first
        /// timeout.
        "er-cocoa" => |_| Self::ER_COCOA,
    }
}
