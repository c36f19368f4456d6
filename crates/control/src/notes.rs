//! Advice on the choice of a mechanism.

/// Notes on an entry of the registry, in sentences, for `docs/mechanisms.md` and the command line. No call of a mechanism
/// reads them.
#[derive(Clone, Copy, Debug)]
pub struct Notes {
    /// The kind of document that the source is, and whether it is still in force.
    pub status: &'static str,
    /// Conditions under which the mechanism fits.
    pub use_when: &'static str,
    /// Conditions under which another one fits better.
    pub avoid_when: &'static str,
    /// Known harm to a network or an application.
    pub hazards: &'static str,
}

const AMBIGUOUS: &str = "A sample of a retransmitted exchange may belong to another transmission than the one it is \
    counted from. RFC 8085 §3.1.1 therefore forbids its use. An answer that was lost makes the RTO grow; one that was \
    late makes it shrink. MAX_TRANSMIT_SPAN may be 240 s, where RFC 7252 has 45 s.";

pub(crate) const DEFAULT: Notes = Notes {
    status: "RFC 7252, a Proposed Standard. Every implementation of CoAP has it.",
    use_when: "Round trips are well below 2 s, messages are rare, and neither RAM nor code can be spent. It keeps nothing \
        of a destination.",
    avoid_when: "Round trips come near 2 s or beyond, like those of NB-IoT, or many devices answer to one event.",
    hazards: "It learns nothing. Where the round-trip time exceeds the timeout it retransmits every message in vain, and \
        goes on doing so. With many clients and long queues that is congestion collapse.",
};

pub(crate) const FULLBACKOFF1: Notes = Notes {
    status: "Published in a paper and a doctoral thesis. Never a draft of the IETF.",
    use_when: "There are seven bytes for a destination and none for an estimator, and round trips may grow beyond 2 s.",
    avoid_when: "Round trips are short and losses are errors of the link: the backoff of one loss delays the recovery of \
        the next.",
    hazards: "The sources bound no timeout, so a few bad exchanges drive it into minutes. Here a backoff is 60 s at most. \
        After one answer without a retransmission the next exchange meets a congested network with 2 s again.",
};

pub(crate) const FULLBACKOFF2: Notes = Notes {
    status: "Published in a paper and a doctoral thesis. Never a draft of the IETF.",
    use_when: "`fullbackoff1` would fit, and congestion lasts longer than an exchange: the kept timeout comes down by halves.",
    avoid_when: "Losses are errors of the link: it takes several answers until a timeout is short again.",
    hazards: "The sources bound no timeout, so a few bad exchanges drive it into minutes. Here a backoff is 60 s at most.",
};

pub(crate) const GST_COAP: Notes = Notes {
    status: "Published in a doctoral thesis alone. Never a draft of the IETF.",
    use_when: "`fullbackoff2` would fit, and congestion ends at once, so that the timeout should follow.",
    avoid_when: "Congestion comes back often: two answers in a row bring the timeout down to an eighth.",
    hazards: "The source bounds no timeout, so a few bad exchanges drive it into minutes. Here a backoff is 60 s at most.",
};

pub(crate) const LINUX_RTO: Notes = Notes {
    status: "RFC 6298 is a Proposed Standard, for TCP. Nobody standardised it for CoAP.",
    use_when: "Comparing with an estimator that takes unambiguous samples alone and keeps a backoff.",
    avoid_when: "Exchanges are minutes apart: nothing ages, so an estimate of yesterday is used today.",
    hazards: "There is no dither: clients that lost packets together send them again together. The RTO is a second at \
        least, or half a second with the preset `californium-3`, which also forgets backoffs.",
};

pub(crate) const BASIC_RTO: Notes = Notes {
    status: "Code alone: Californium 3. A paper measured an earlier version of it.",
    use_when: "Comparing: it shows what smoothing is worth.",
    avoid_when: "Always, in a network.",
    hazards: "There is no dither, and samples of retransmitted exchanges count, which RFC 8085 §3.1.1 forbids. One odd \
        sample is the next RTO.",
};

pub(crate) const PEAK_HOPPER: Notes = Notes {
    status: "A paper of 2004 on TCP, known here by its draft of 2003; Californium 3 has it for CoAP, with a different rise.",
    use_when: "The round-trip time jumps, and a needless retransmission costs more than waiting.",
    avoid_when: "Losses are frequent: the RTO stays near its peak for dozens of samples, so recovery is slow.",
    hazards: "None known of the paper's rules. The preset `californium-3` forgets backoffs, has no dither, and hops when \
        the round-trip time falls to half.",
};

pub(crate) const COAP_EIFEL: Notes = Notes {
    status: "A doctoral thesis, after a paper of 2000 on TCP.",
    use_when: "The round-trip time rises fast and falls slowly, like that of a queue that fills.",
    avoid_when: "Exchanges are minutes apart: nothing ages.",
    hazards: "The code of the thesis bounds no timeout (preset `contiki`). Here it is 60 s at most.",
};

pub(crate) const COCOA: Notes = Notes {
    status: "An Internet-Draft of the CoRE working group, expired in 2018. It never became an RFC.",
    use_when: "A general choice for confirmable messages over paths that are not known beforehand, and where results are \
        to be compared with other people's.",
    avoid_when: "Round trips vary a lot without a loss, or buffers are long: weak samples then follow needless \
        retransmissions.",
    hazards: "A sample of a retransmitted exchange may belong to another transmission than the one it is counted from. \
        RFC 8085 §3.1.1 therefore forbids its use. An answer that was lost makes the RTO grow; one that was late makes it \
        shrink. Transfers at heavy loss are therefore slow: 1 MiB block-wise at 20 % loss each way, one block after the \
        other, is not finished after 580 s, where `fasor` takes 70 to 156 s and `default`, with its first timeout at \
        100 ms, 106 to 135 s. MAX_TRANSMIT_SPAN may be 240 s, where RFC 7252 has 45 s.",
};

pub(crate) const COCOA0: Notes = Notes {
    status: "An individual Internet-Draft, expired, and the baseline of a paper.",
    use_when: "Comparing with papers from before 2015.",
    avoid_when: "In every other case: its successors `cocoa-plus` and `cocoa` were made to correct its faults.",
    hazards: "A sample of a retransmitted exchange weighs as much as an unambiguous one, after any number of \
        retransmissions. RFC 8085 §3.1.1 forbids the use of ambiguous samples. The RTO was not bounded; here it is 60 s at \
        most. The gains of SRTT and RTTVAR are 1/8 and 1/4, those of the code behind the published figures. The paper \
        prints 1/4 and 1/8 (preset `paper-2015`).",
};

pub(crate) const COCOA_PLUS: Notes = Notes {
    status: "A paper of 2015, from which the working group's draft of `cocoa` grew.",
    use_when: "Comparing with that paper, which most results name as CoCoA or CoCoA+.",
    avoid_when: "You can have `cocoa`, unless a timeout above 3 s should grow by no more than 1.3.",
    hazards: "A sample of a retransmitted exchange may belong to another transmission. RFC 8085 §3.1.1 forbids its use. \
        Above 3 s a timeout grows by 1.3 only, so a congested network gets little rest. The gains of SRTT and RTTVAR are \
        1/8 and 1/4, those of the code behind the published figures. The paper prints 1/4 and 1/8 (preset `paper-2015`).",
};

pub(crate) const COCOA_STRONG: Notes = Notes {
    status: "Code alone: Californium; a paper measured it.",
    use_when: "Ambiguous samples are not wanted, and round trips change little.",
    avoid_when: "Round trips can outgrow the RTO: every exchange is then retransmitted, none makes a sample, and only \
        ageing helps in the end.",
    hazards: "No backoff is kept, so needless retransmissions go on until the RTO has aged. This is a danger where ageing \
        is off or messages are frequent.",
};

pub(crate) const FULLBACKOFF1_COCOA: Notes = Notes {
    status: "Published in a paper and a doctoral thesis. Never a draft of the IETF.",
    use_when: "`cocoa` would fit, and buffers are long: an exchange starts from the timeout that the last one backed off to.",
    avoid_when: "Losses are errors of the link: the RTO becomes the backed-off timeout, even if that is the shorter one.",
    hazards: AMBIGUOUS,
};

pub(crate) const FULLBACKOFF2_COCOA: Notes = Notes {
    status: "Published in a paper and a doctoral thesis. Never a draft of the IETF.",
    use_when: "`fullbackoff1-cocoa` would fit, and a backoff should never shorten a long RTO.",
    avoid_when: "Losses are errors of the link: each makes the RTO longer, and strong samples take it back by halves.",
    hazards: AMBIGUOUS,
};

pub(crate) const GSRTC: Notes = Notes {
    status: "Published in a doctoral thesis alone, which contradicts itself: algorithm 2, which is followed here, takes over no \
        backoff, and the text builds it on `fullbackoff2-cocoa` (preset `gsrtc-on-fullbackoff2`). Never a draft of the IETF.",
    use_when: "`cocoa` would fit, and a path is calm for long: the more strong samples in a row, the closer the RTO follows \
        them.",
    avoid_when: "Round trips vary without a loss: after six strong samples the RTO is nearly the last estimate.",
    hazards: AMBIGUOUS,
};

pub(crate) const COCOA_I: Notes = Notes {
    status: "Published in a paper. Never a draft of the IETF.",
    use_when: "All requests are idempotent, and an answer should name the transmission it answers without a change to the \
        peer.",
    avoid_when: "Requests are not idempotent: they are retransmitted and sampled as in `cocoa`.",
    hazards: "A fresh Message ID for a retransmission defeats the peer's deduplication: it carries a request out twice. \
        The endpoint therefore uses one only for requests that are idempotent, or that the application allows it for. Other \
        requests make ambiguous samples. RFC 8085 §3.1.1 forbids their use. The paper does not say which estimator takes the \
        answer to a retransmission; here it is the strong one.",
};

pub(crate) const COCOA_PLUS_PLUS: Notes = Notes {
    status: "Published in a doctoral thesis, with code that differs from it.",
    use_when: "Studying delay gradients. The RAM is twice that of the others.",
    avoid_when: "Exchanges are rare: an interval takes several samples, and a gradient two intervals.",
    hazards: "The published code shortens timeouts between the retransmissions of an exchange, against RFC 7252 §4.2. It is \
        the preset `student-contiki`, for comparison alone. Here timeouts grow by 1.42, not by 2, so five of them take \
        11.4 RTO instead of 31. Samples are ambiguous. RFC 8085 §3.1.1 forbids their use.",
};

pub(crate) const FASOR: Notes = Notes {
    status: "An Internet-Draft of the CoRE working group, expired in 2023, and a thesis that measured it.",
    use_when: "Losses are sometimes errors and sometimes congestion, and nothing on the wire may change.",
    avoid_when: "Exchanges are minutes apart: there is no ageing, so an old estimate counts like a new one.",
    hazards: "Without a marking a retransmitted exchange tells nothing about the round-trip time, so after a rise the \
        estimate stays behind until an exchange needs no retransmission. The slow RTO is not dithered.",
};

pub(crate) const FASOR_TOKEN: Notes = Notes {
    status: "An Internet-Draft of the CoRE working group, expired in 2023 (§4.5), and a thesis that measured it.",
    use_when: "`fasor` would fit, and a byte in the token of retransmissions can be spared: every answer is a sample then, \
        with any peer.",
    avoid_when: "Exchanges are minutes apart, or tokens mean something to you.",
    hazards: "The slow RTO is not dithered. Retransmissions differ from the first transmission by a byte of the token.",
};

pub(crate) const FASOR_OPTION: Notes = Notes {
    status: "An Internet-Draft of the CoRE working group, expired in 2023 (§4.4). The option has no assigned number.",
    use_when: "Both ends are yours: every answer is a sample.",
    avoid_when: "Peers do not echo the option: it is then `fasor` with longer requests.",
    hazards: "The slow RTO is not dithered. The draft left the number of the option open. Here it is 65020, in the range for \
        experiments.",
};

pub(crate) const RTT_COAP: Notes = Notes {
    status: "Published in a paper that leaves gains, thresholds and bounds open: they are chosen here.",
    use_when: "Many exchanges to one destination are wanted at once, over a path of one's own.",
    avoid_when: "The path is shared with others. Peers that do not echo the option are served, but from every loss on with fewer \
        exchanges at once.",
    hazards: "While every answer is a sample, only the rate bounds the exchanges under way, up to 64 of them (`nstart`, or the \
        application's own NSTART if that is smaller). From a retransmission until the next sample the backed-off RTO is \
        kept, the rate does not rise, and one exchange is outstanding, like before the first sample. The next sample is the \
        answer to the retransmission if the peer echoes the option, and otherwise the next exchange without one. After an \
        outage, the answers to what waited are samples as long as the outage. The rate recovers with each sample alone, and \
        so may stay at one request in ten seconds for minutes.",
};
