//! The mechanisms that are CoCoA with other parameters.

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

/// `cocoa`.
pub(crate) const COCOA: Entry = entry(
    "cocoa",
    "strong and weak estimator blended into one RTO, variable backoff factor, ageing",
    "draft-ietf-core-cocoa-03",
    notes::COCOA,
    Cocoa::DEFAULT,
);

impl Cocoa {
    /// The first CoCoA. Neither paper nor draft bounds the RTO; 60 s is what RFC 8085 §3.1.1 asks for at least. The draft lets
    /// an estimator age; here the RTO does, for that is where it is felt.
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

    /// CoCoA+. The paper has no truncation at 32 s; 60 s is what RFC 8085 §3.1.1 asks for at least.
    pub(super) const COCOA_PLUS: Self = Self {
        max_timeout: Duration::from_secs(60),
        max_weak_n: 1,
        vbf_large: Ratio::new(13, 10),
        ageing: Ageing::CocoaPlus,
        ..Self::DEFAULT
    };

    /// Full backoff over CoCoA. Rathod's example (2022 §5.1.1) backs off from 32 s to 48 s, so the draft's truncation does not
    /// hold; 60 s is the bound of the RTO too.
    pub(super) const FULLBACKOFF2: Self =
        Self { max_timeout: Duration::from_secs(60), after_backoff: AfterBackoff::Maximum, ..Self::DEFAULT };
}

/// `cocoa0`. **Choice:** the gains of SRTT and RTTVAR are 1/8 and 1/4, as in er-cocoa, the code behind the published figures,
/// and in draft-ietf-core-cocoa-03. Betzler et al. 2015 (§2.2) print 1/4 and 1/8, and Californium has these too, so that they
/// were exchanged by mistake is not proven. The printed ones are the preset `paper-2015`.
pub(crate) const COCOA0: Entry = entry(
    "cocoa0",
    "the first CoCoA: strong and weak estimates weigh the same, any exchange is a sample, always doubled",
    "draft-bormann-core-cocoa-00; Betzler et al. 2015 §2.2",
    notes::COCOA0,
    Cocoa::COCOA0,
);

/// `cocoa-plus`. **Choice:** the gains are those of `cocoa0`, for the same reasons. The paper (§3) adds the ageing of large RTOs
/// to that of small ones, which stays.
pub(crate) const COCOA_PLUS: Entry = entry(
    "cocoa-plus",
    "CoCoA as first published: one retransmission at most for a weak sample, factor 1.3 above 3 s",
    "Betzler, Gomez, Demirkol, Paradells 2015, CoCoA+",
    notes::COCOA_PLUS,
    Cocoa::COCOA_PLUS,
);

/// `cocoa-strong`. Ambiguous samples are not used, as RFC 8085 §3.1.1 demands; but nothing of a backoff is kept either, so
/// a round-trip time that has outgrown the RTO is learnt by ageing alone.
pub(crate) const COCOA_STRONG: Entry = entry(
    "cocoa-strong",
    "CoCoA without the weak estimator: only exchanges without a retransmission are samples",
    "Bhalerao et al. 2016; Californium, CocoaStrong",
    notes::COCOA_STRONG,
    Cocoa { max_weak_n: 0, ..Cocoa::DEFAULT },
);

/// `fullbackoff1-cocoa`.
pub(crate) const FULLBACKOFF1_COCOA: Entry = entry(
    "fullbackoff1-cocoa",
    "CoCoA that takes over the timeout that a retransmitted exchange was answered after",
    "Järvinen et al. 2018; Rathod 2022 §5.1",
    notes::FULLBACKOFF1_COCOA,
    Cocoa { after_backoff: AfterBackoff::Take, ..Cocoa::FULLBACKOFF2 },
);

/// `fullbackoff2-cocoa`.
pub(crate) const FULLBACKOFF2_COCOA: Entry = entry(
    "fullbackoff2-cocoa",
    "CoCoA that takes over the timeout that a retransmitted exchange was answered after, if it is the longer",
    "Järvinen et al. 2018; Rathod 2022 §5.1",
    notes::FULLBACKOFF2_COCOA,
    Cocoa::FULLBACKOFF2,
);

/// `gsrtc`. **Choice:** as algorithm 2 is printed, which takes over no backoff. Elsewhere (§5.2.1, §5.3.3) the thesis says that
/// GSRTC is built on Fullbackoff2: preset `gsrtc-on-fullbackoff2`.
pub(crate) const GSRTC: Entry = entry(
    "gsrtc",
    "CoCoA whose strong weight grows with every strong sample in a row, from 1/2 to 0.99",
    "Rathod 2022 §5.2, GSRTC",
    notes::GSRTC,
    Cocoa { weighting: Weighting::Gsrtc, ..Cocoa::DEFAULT },
);

/// `cocoa-i`. As published every request is sent anew with each retransmission, whatever it does: a server that sees two
/// Message IDs carries it out twice. **Choice:** the answer to a retransmission is a strong sample, for it is as certain as one to
/// a first transmission; the paper (§III) keeps both estimators and does not say which of them takes it
/// (`marked_retransmission`). Here the endpoint marks only requests that are idempotent or that the application
/// allows it for; others are retransmitted as RFC 7252 says and sampled as in `cocoa`.
pub(crate) const COCOA_I: Entry = entry(
    "cocoa-i",
    "CoCoA whose band moves with the strong estimate, with a fresh Message ID for every retransmission",
    "Meng et al. 2017, CoCoA-I",
    notes::COCOA_I,
    Cocoa { band: Band::Strong, marking: Marking::FreshMessageId, ..Cocoa::DEFAULT },
);

// Published: 29 bytes; one more counts samples in a row.
const _: () = assert!(size_of::<CocoaState>() <= 30);
