//! The registry entries of `cocoa` and of its variants with other parameters.

use super::{AfterBackoff, Ageing, Band, Cocoa, CocoaState, SampleOfGiveUp, Weighting};
use crate::estimator::UNBOUNDED;
use crate::parameters::Switch;
use crate::{Duration, Entry, Marking, Mechanism, Notes, Origin, Ratio};

const fn entry(
    name: &'static str,
    summary: &'static str,
    source: &'static str,
    notes: Notes,
    mechanism: Cocoa,
) -> Entry {
    Entry { name, summary, source, origin: Origin::Published, notes, mechanism: Mechanism::Cocoa(mechanism) }
}

/// The registry entry `cocoa`.
pub(crate) const COCOA: Entry = entry(
    "cocoa",
    "strong and weak estimator blended into one RTO, variable backoff factor, ageing",
    "draft-ietf-core-cocoa-03",
    Notes {
        status: "An Internet-Draft of the CoRE working group, expired in 2018. It never became an RFC.",
        use_when: "A general choice for confirmable messages over paths that are not known beforehand, and \
            where results are to be compared with other people's.",
        avoid_when: "Round trips vary a lot without a loss, or buffers are long: weak samples then follow \
            spurious retransmissions.",
        hazards: "A sample of a retransmitted exchange may belong to another transmission than the one it \
            is counted from. RFC 8085 §3.1.1 therefore forbids its use. An answer that was lost makes the \
            RTO grow; one that was late makes it shrink. Transfers at heavy loss are therefore slow: 1 MiB \
            block-wise at 20 % loss each way, one block after the other, is not finished after 580 s, where \
            `fasor` takes 70 to 156 s and `default`, with its first timeout at 100 ms, 106 to 135 s. \
            MAX_TRANSMIT_SPAN may be 240 s, where RFC 7252 has 45 s.",
    },
    Cocoa::DEFAULT,
);

impl Cocoa {
    /// The rules of draft-ietf-core-cocoa-03, without the lower bound of the RTO that this crate adds.
    pub(super) const PUBLISHED: Self = Self { min_rto: UNBOUNDED, ..Self::DEFAULT };

    /// The parameters of Betzler's er-cocoa for Contiki.
    pub(crate) const ER_COCOA: Self = Self {
        max_estimate: Duration::from_secs(60),
        max_timeout: Duration::from_secs(268),
        weak_weight: Ratio::new(3, 4),
        max_weak_n: 255,
        vbf_small: Ratio::new(5, 2),
        ageing: Ageing::ErCocoa,
        forget_strong_after: 3,
        give_up: SampleOfGiveUp::Weak,
        sample_reset: Switch::On,
        granularity: UNBOUNDED,
        final_wait: Switch::Off,
        ..Self::PUBLISHED
    };

    /// The parameters of Californium 1.0 to 2.8.
    pub(super) const CALIFORNIUM2: Self = Self {
        max_rto: Duration::from_secs(32),
        max_timeout: Duration::from_secs(60),
        srtt_gain: Ratio::new(1, 4),
        rttvar_gain: Ratio::new(1, 8),
        ageing: Ageing::Californium2,
        granularity: UNBOUNDED,
        tick: Duration::from_millis(1),
        ..Self::PUBLISHED
    };

    /// The parameters of the first CoCoA. Its source does not bound backoffs, so `max_timeout` is 60 s, the least bound
    /// that RFC 8085 §3.1.1 allows.
    pub(super) const COCOA0: Self = Self {
        max_timeout: Duration::from_secs(60),
        k_weak: 4,
        weak_weight: Ratio::new(1, 2),
        max_weak_n: 255,
        vbf_small: Ratio::new(2, 1),
        vbf_large: Ratio::new(2, 1),
        ageing: Ageing::Cocoa0,
        ..Self::DEFAULT
    };

    /// The parameters of CoCoA+. Its source does not bound backoffs either.
    pub(super) const COCOA_PLUS: Self = Self {
        max_timeout: Duration::from_secs(60),
        max_weak_n: 1,
        vbf_large: Ratio::new(13, 10),
        ageing: Ageing::CocoaPlus,
        ..Self::DEFAULT
    };

    /// The parameters of full backoff with CoCoA. The example of Rathod 2022 §5.1.1 backs off from 32 s to 48 s, so the
    /// draft's bound of 32 s does not apply here. The upper bound is 60 s, the same as the RTO's.
    pub(super) const FULLBACKOFF2: Self =
        Self { max_timeout: Duration::from_secs(60), after_backoff: AfterBackoff::Maximum, ..Self::DEFAULT };
}

/// The registry entry `cocoa0`.
///
/// **Differences from the source**
/// * The gains of SRTT and RTTVAR are 1/8 and 1/4. The same gains are in er-cocoa, the code behind the published
///   figures, and in draft-ietf-core-cocoa-03. Betzler et al. 2015 (§2.2) print 1/4 and 1/8 (preset `paper-2015`).
///   Californium has the printed values, so it is not proven that the paper swapped them by mistake.
/// * The RTO is 60 s at most, and 50 ms at least.
/// * The RTO ages. In the draft an estimator ages.
pub(crate) const COCOA0: Entry = entry(
    "cocoa0",
    "the first CoCoA: strong and weak estimates weigh the same, any exchange is a sample, always doubled",
    "draft-bormann-core-cocoa-00; Betzler et al. 2015 §2.2",
    Notes {
        status: "An individual Internet-Draft, expired, and the baseline of a paper.",
        use_when: "Comparing with papers from before 2015.",
        avoid_when: "In every other case: its successors `cocoa-plus` and `cocoa` were made to correct its \
            faults.",
        hazards: "A sample of a retransmitted exchange weighs as much as an unambiguous one, after any \
            number of retransmissions. RFC 8085 §3.1.1 forbids the use of ambiguous samples. The RTO was \
            not bounded; here it is 60 s at most. The gains of SRTT and RTTVAR are 1/8 and 1/4, as in \
            the code behind the published figures. The paper prints 1/4 and 1/8 (preset `paper-2015`).",
    },
    Cocoa::COCOA0,
);

/// The registry entry `cocoa-plus`. The paper (§3) adds an ageing of large RTOs, and keeps the ageing of small ones.
///
/// **Differences from the source**
/// * The gains are the same as in `cocoa0`, and for the same reasons (preset `paper-2015`).
/// * The RTO is 60 s at most, and 50 ms at least.
pub(crate) const COCOA_PLUS: Entry = entry(
    "cocoa-plus",
    "CoCoA as first published: one retransmission at most for a weak sample, factor 1.3 above 3 s",
    "Betzler, Gomez, Demirkol, Paradells 2015, CoCoA+",
    Notes {
        status: "A paper of 2015, from which the working group's draft of `cocoa` grew.",
        use_when: "Comparing with that paper, which most results name as CoCoA or CoCoA+.",
        avoid_when: "You can have `cocoa`, unless a timeout above 3 s should grow by no more than 1.3.",
        hazards: "A sample of a retransmitted exchange may belong to another transmission. RFC 8085 §3.1.1 \
            forbids its use. Above 3 s a timeout grows by 1.3 only, so a congested network gets little \
            rest. The gains of SRTT and RTTVAR are 1/8 and 1/4, as in the code behind the published \
            figures. The paper prints 1/4 and 1/8 (preset `paper-2015`).",
    },
    Cocoa::COCOA_PLUS,
);

/// The registry entry `cocoa-strong`. It uses no ambiguous samples, as RFC 8085 §3.1.1 demands.
///
/// **Unsafe as published**
/// * No backoff is kept. If the round-trip time has outgrown the RTO, only ageing corrects the RTO. This mechanism does
///   the same.
pub(crate) const COCOA_STRONG: Entry = entry(
    "cocoa-strong",
    "CoCoA without the weak estimator: only exchanges without a retransmission are samples",
    "Bhalerao et al. 2016; Californium, CocoaStrong",
    Notes {
        status: "Code alone: Californium; a paper measured it.",
        use_when: "Ambiguous samples are not wanted, and round trips change little.",
        avoid_when: "Round trips can outgrow the RTO: every exchange is then retransmitted, none makes a \
            sample, and only ageing helps in the end.",
        hazards: "No backoff is kept, so spurious retransmissions go on until the RTO has aged. This is a \
            danger where ageing is off or messages are frequent.",
    },
    Cocoa { max_weak_n: 0, ..Cocoa::DEFAULT },
);

/// The hazard text for mechanisms that use samples of retransmitted exchanges.
const AMBIGUOUS: &str = "A sample of a retransmitted exchange may belong to another transmission than the \
    one it is counted from. RFC 8085 §3.1.1 therefore forbids its use. An answer that was lost makes the \
    RTO grow; one that was late makes it shrink. MAX_TRANSMIT_SPAN may be 240 s, where RFC 7252 has 45 s.";

/// The registry entry `fullbackoff1-cocoa`.
pub(crate) const FULLBACKOFF1_COCOA: Entry = entry(
    "fullbackoff1-cocoa",
    "CoCoA that takes over the timeout that a retransmitted exchange was answered after",
    "Järvinen et al. 2018; Rathod 2022 §5.1",
    Notes {
        status: "Published in a paper and a doctoral thesis. Never a draft of the IETF.",
        use_when: "`cocoa` would fit, and buffers are long: an exchange starts from the timeout that the \
            last one backed off to.",
        avoid_when: "Losses are errors of the link: the RTO becomes the backed-off timeout, even if that is \
            the shorter one.",
        hazards: AMBIGUOUS,
    },
    Cocoa { after_backoff: AfterBackoff::Take, ..Cocoa::FULLBACKOFF2 },
);

/// The registry entry `fullbackoff2-cocoa`.
pub(crate) const FULLBACKOFF2_COCOA: Entry = entry(
    "fullbackoff2-cocoa",
    "CoCoA that takes over the timeout that a retransmitted exchange was answered after, if it is the longer",
    "Järvinen et al. 2018; Rathod 2022 §5.1",
    Notes {
        status: "Published in a paper and a doctoral thesis. Never a draft of the IETF.",
        use_when: "`fullbackoff1-cocoa` would fit, and a backoff should never shorten a long RTO.",
        avoid_when: "Losses are errors of the link: each makes the RTO longer, and strong samples take it \
            back by halves.",
        hazards: AMBIGUOUS,
    },
    Cocoa::FULLBACKOFF2,
);

/// The registry entry `gsrtc`.
pub(crate) const GSRTC: Entry = entry(
    "gsrtc",
    "CoCoA whose strong weight grows with every strong sample in a row, from 1/2 to 0.99",
    "Rathod 2022 §5.2, GSRTC",
    Notes {
        status: "Published in a doctoral thesis alone, which contradicts itself: algorithm 2, which is \
            followed here, takes over no backoff, and the text builds it on `fullbackoff2-cocoa` (preset \
            `gsrtc-on-fullbackoff2`). Never a draft of the IETF.",
        use_when: "`cocoa` would fit, and a path is calm for long: the more strong samples in a row, the \
            closer the RTO follows them.",
        avoid_when: "Round trips vary without a loss: after six strong samples the RTO is nearly the last \
            estimate.",
        hazards: AMBIGUOUS,
    },
    Cocoa { weighting: Weighting::Gsrtc, ..Cocoa::DEFAULT },
);

/// The registry entry `cocoa-i`.
///
/// **Differences from the source**
/// * Retransmissions have a fresh Message ID only if the request is idempotent, or if the application allows it. Other
///   messages are retransmitted as in RFC 7252, and sampled as in `cocoa`.
///
/// **Unsafe as published**
/// * Every retransmission has a fresh Message ID, so a server may carry out the same request twice, even if it is not
///   idempotent.
pub(crate) const COCOA_I: Entry = entry(
    "cocoa-i",
    "CoCoA whose band moves with the strong estimate, with a fresh Message ID for every retransmission",
    "Meng et al. 2017, CoCoA-I",
    Notes {
        status: "Published in a paper. Never a draft of the IETF.",
        use_when: "All requests are idempotent, and an answer should name the transmission it answers \
            without a change to the peer.",
        avoid_when: "Requests are not idempotent: they are retransmitted and sampled as in `cocoa`.",
        hazards: "A fresh Message ID for a retransmission defeats the peer's deduplication: it carries a \
            request out twice. The endpoint therefore uses one only for requests that are idempotent, or \
            that the application allows it for. Other requests make ambiguous samples. RFC 8085 §3.1.1 \
            forbids their use. The paper does not say which estimator takes the answer to a retransmission; \
            here it is the strong one.",
    },
    Cocoa { band: Band::Strong, marking: Marking::FreshMessageId, ..Cocoa::DEFAULT },
);

// The published size is 29 bytes. One more counts samples in a row.
const _: () = assert!(size_of::<CocoaState>() <= 30);
