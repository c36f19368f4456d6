//! The entries of `cocoa` and of the mechanisms that are CoCoA with other parameters.

use super::{AfterBackoff, Ageing, Band, Cocoa, CocoaState, Weighting};
use crate::{Duration, Entry, Marking, Mechanism, Notes, Ratio, notes};

const fn entry(
    name: &'static str,
    summary: &'static str,
    source: &'static str,
    notes: Notes,
    mechanism: Cocoa,
) -> Entry {
    Entry { name, summary, source, notes, mechanism: Mechanism::Cocoa(mechanism) }
}

/// The entry `cocoa`.
pub(crate) const COCOA: Entry = entry(
    "cocoa",
    "strong and weak estimator blended into one RTO, variable backoff factor, ageing",
    "draft-ietf-core-cocoa-03",
    notes::COCOA,
    Cocoa::DEFAULT,
);

impl Cocoa {
    /// The parameters of the first CoCoA. Neither paper nor draft bounds the RTO. Here it is 60 s at most, the least bound
    /// that RFC 8085 §3.1.1 allows. In the draft an estimator ages; here the RTO does.
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

    /// The parameters of CoCoA+. The paper has no truncation at 32 s. Here it is 60 s, the least bound that RFC 8085 §3.1.1
    /// allows.
    pub(super) const COCOA_PLUS: Self = Self {
        max_timeout: Duration::from_secs(60),
        max_weak_n: 1,
        vbf_large: Ratio::new(13, 10),
        ageing: Ageing::CocoaPlus,
        ..Self::DEFAULT
    };

    /// The parameters of full backoff over CoCoA. The example of Rathod 2022 §5.1.1 backs off from 32 s to 48 s, so the
    /// truncation of the draft does not hold. The bound is 60 s, that of the RTO.
    pub(super) const FULLBACKOFF2: Self =
        Self { max_timeout: Duration::from_secs(60), after_backoff: AfterBackoff::Maximum, ..Self::DEFAULT };
}

/// The entry `cocoa0`.
///
/// **Differences from the source**
/// * The gains of SRTT and RTTVAR are 1/8 and 1/4. So they are in er-cocoa, the code behind the published figures, and in
///   draft-ietf-core-cocoa-03. Betzler et al. 2015 (§2.2) print 1/4 and 1/8 (preset `paper-2015`). Californium has the printed
///   ones, so it is not proven that the paper exchanged them by mistake.
/// * The RTO is 60 s at most, and 50 ms at least.
/// * The RTO ages, not an estimator.
pub(crate) const COCOA0: Entry = entry(
    "cocoa0",
    "the first CoCoA: strong and weak estimates weigh the same, any exchange is a sample, always doubled",
    "draft-bormann-core-cocoa-00; Betzler et al. 2015 §2.2",
    notes::COCOA0,
    Cocoa::COCOA0,
);

/// The entry `cocoa-plus`. The paper (§3) adds the ageing of large RTOs to that of small ones, which stays.
///
/// **Differences from the source**
/// * The gains are those of `cocoa0`, for the reasons given there (preset `paper-2015`).
/// * The RTO is 60 s at most, and 50 ms at least.
pub(crate) const COCOA_PLUS: Entry = entry(
    "cocoa-plus",
    "CoCoA as first published: one retransmission at most for a weak sample, factor 1.3 above 3 s",
    "Betzler, Gomez, Demirkol, Paradells 2015, CoCoA+",
    notes::COCOA_PLUS,
    Cocoa::COCOA_PLUS,
);

/// The entry `cocoa-strong`. It uses no ambiguous samples, as RFC 8085 §3.1.1 demands.
///
/// **Unsafe as published**
/// * No backoff is kept. If the round-trip time has outgrown the RTO, only ageing corrects the RTO. This is so here too.
pub(crate) const COCOA_STRONG: Entry = entry(
    "cocoa-strong",
    "CoCoA without the weak estimator: only exchanges without a retransmission are samples",
    "Bhalerao et al. 2016; Californium, CocoaStrong",
    notes::COCOA_STRONG,
    Cocoa { max_weak_n: 0, ..Cocoa::DEFAULT },
);

/// The entry `fullbackoff1-cocoa`.
pub(crate) const FULLBACKOFF1_COCOA: Entry = entry(
    "fullbackoff1-cocoa",
    "CoCoA that takes over the timeout that a retransmitted exchange was answered after",
    "Järvinen et al. 2018; Rathod 2022 §5.1",
    notes::FULLBACKOFF1_COCOA,
    Cocoa { after_backoff: AfterBackoff::Take, ..Cocoa::FULLBACKOFF2 },
);

/// The entry `fullbackoff2-cocoa`.
pub(crate) const FULLBACKOFF2_COCOA: Entry = entry(
    "fullbackoff2-cocoa",
    "CoCoA that takes over the timeout that a retransmitted exchange was answered after, if it is the longer",
    "Järvinen et al. 2018; Rathod 2022 §5.1",
    notes::FULLBACKOFF2_COCOA,
    Cocoa::FULLBACKOFF2,
);

/// The entry `gsrtc`. The thesis contradicts itself: algorithm 2, which is followed here, takes over no backoff; by §5.2.1 and
/// §5.3.3 GSRTC is built on Fullbackoff2 (preset `gsrtc-on-fullbackoff2`).
pub(crate) const GSRTC: Entry = entry(
    "gsrtc",
    "CoCoA whose strong weight grows with every strong sample in a row, from 1/2 to 0.99",
    "Rathod 2022 §5.2, GSRTC",
    notes::GSRTC,
    Cocoa { weighting: Weighting::Gsrtc, ..Cocoa::DEFAULT },
);

/// The entry `cocoa-i`. The paper (§III) keeps both estimators and does not say which of them takes the answer to a
/// retransmission. Here it is the strong one, for that answer is as certain as one to a first transmission
/// (`marked_retransmission`).
///
/// **Differences from the source**
/// * The endpoint gives a fresh Message ID only to retransmissions of requests that are idempotent, or that the application
///   allows it for. Others are retransmitted like RFC 7252 says, and sampled like in `cocoa`.
///
/// **Unsafe as published**
/// * Every retransmission has a fresh Message ID, so a server carries out a request twice that is not idempotent.
pub(crate) const COCOA_I: Entry = entry(
    "cocoa-i",
    "CoCoA whose band moves with the strong estimate, with a fresh Message ID for every retransmission",
    "Meng et al. 2017, CoCoA-I",
    notes::COCOA_I,
    Cocoa { band: Band::Strong, marking: Marking::FreshMessageId, ..Cocoa::DEFAULT },
);

// The published size is 29 bytes. One more counts samples in a row.
const _: () = assert!(size_of::<CocoaState>() <= 30);
