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

/// `cocoa0`. Neither paper nor draft bounds the RTO; 60 s is what RFC 8085 §3.1.1 asks for at least. The draft lets an
/// estimator age; here the RTO does, for that is where it is felt.
pub(crate) const COCOA0: Entry = entry(
    "cocoa0",
    "the first CoCoA: strong and weak estimates weigh the same, any exchange is a sample, always doubled",
    "draft-bormann-core-cocoa-00; Betzler et al. 2015 §2.2",
    notes::COCOA0,
    Cocoa {
        max_rto: Duration::from_secs(60),
        max_timeout: Duration::from_secs(60),
        k_weak: 4,
        weak_weight: Ratio::new(1, 2),
        max_weak_n: 255,
        vbf_small: Ratio::new(2, 1),
        vbf_large: Ratio::new(2, 1),
        ageing: Ageing::Cocoa0,
        ..Cocoa::DEFAULT
    },
);

/// `cocoa-plus`. The paper has no truncation at 32 s; 60 s is what RFC 8085 §3.1.1 asks for at least.
pub(crate) const COCOA_PLUS: Entry = entry(
    "cocoa-plus",
    "CoCoA as first published: one retransmission at most for a weak sample, factor 1.3 above 3 s",
    "Betzler, Gomez, Demirkol, Paradells 2015, CoCoA+",
    notes::COCOA_PLUS,
    Cocoa {
        max_rto: Duration::from_secs(60),
        max_timeout: Duration::from_secs(60),
        max_weak_n: 1,
        vbf_large: Ratio::new(13, 10),
        ageing: Ageing::CocoaPlus,
        ..Cocoa::DEFAULT
    },
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
    Cocoa { after_backoff: AfterBackoff::Take, ..Cocoa::DEFAULT },
);

/// `fullbackoff2-cocoa`.
pub(crate) const FULLBACKOFF2_COCOA: Entry = entry(
    "fullbackoff2-cocoa",
    "CoCoA that takes over the timeout that a retransmitted exchange was answered after, if it is the longer",
    "Järvinen et al. 2018; Rathod 2022 §5.1",
    notes::FULLBACKOFF2_COCOA,
    Cocoa { after_backoff: AfterBackoff::Maximum, ..Cocoa::DEFAULT },
);

/// `gsrtc`.
pub(crate) const GSRTC: Entry = entry(
    "gsrtc",
    "fullbackoff2-cocoa whose strong weight grows with every strong sample in a row, from 1/2 to 0.99",
    "Rathod 2022 §5.2, GSRTC",
    notes::GSRTC,
    Cocoa { after_backoff: AfterBackoff::Maximum, weighting: Weighting::Gsrtc, ..Cocoa::DEFAULT },
);

/// `cocoa-i`. As published every request is sent anew with each retransmission, whatever it does: a server that sees two
/// Message IDs carries it out twice. Here the endpoint marks only requests that are idempotent or that the application
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
