/* Coapace: congestion control for CoAP (RFC 7252). Licence: MIT OR Apache-2.0.
 *
 * A mechanism computes how long to wait for an acknowledgement before a message is sent again, and learns from the answers.
 * The library has no sockets, no clock, no heap, no random numbers and no global state. The caller brings the time and keeps
 * the memory:
 *
 *   - one struct coapace_mechanism, chosen once: the mechanism and its parameters;
 *   - for each destination a state of a few bytes: COAPACE_STATE(size);
 *   - for each exchange under way a struct coapace_exchange.
 *
 * Words: an exchange is one confirmable message with its retransmissions and its acknowledgement. The ordinal of a
 * transmission is its number within the exchange, 0 for the first. A marking is the way in which a transmission carries its
 * ordinal. A draw is a random number.
 *
 * Example, one confirmable message to one destination:
 *
 *   static struct coapace_mechanism mechanism;
 *   static COAPACE_STATE(COAPACE_STATE_SIZE_COCOA) peer;
 *
 *   struct coapace_exchange exchange;
 *   struct coapace_cue cue = {0, 0, 1};         // at 0 s, the least draw, one exchange under way
 *   struct coapace_outcome outcome = {{0, 0, 0, 0, 0, 0}, COAPACE_ACKED};
 *   uint64_t timeout_us;
 *
 *   coapace_init(&mechanism, COAPACE_COCOA);
 *   coapace_state_init(&mechanism, &peer, sizeof peer);
 *   coapace_on_start(&mechanism, &peer, &exchange, &cue, &timeout_us);        // sent: wait 2 s
 *   cue.now_us = 2000000;
 *   coapace_on_retransmit(&mechanism, &peer, &exchange, &cue, &timeout_us);   // sent again: wait 4 s
 *   cue.now_us = 2600000;                                                     // the acknowledgement
 *   outcome.sample.since_first_us = 2600000;
 *   outcome.sample.since_last_us = 600000;
 *   outcome.sample.retransmits = 1;
 *   coapace_on_end(&mechanism, &peer, &exchange, &outcome, &cue);
 *
 * Time. Every time is in microseconds, of 64 bits, and saturates. A moment (now_us) counts from an origin that the caller
 * chooses once. If it runs backwards, a mechanism ages its estimates too soon. This does no other harm.
 *
 * Patience. A mechanism says when to send a copy, not when a peer is dead. On a path of a few milliseconds its timeouts may add
 * up to a tenth of a second, so a caller that gives up after the last of them fails at every short outage, and floods a dead peer
 * if it begins again at once. Do as the endpoint of coapace-proto does: wait for an answer until MAX_TRANSMIT_WAIT (93 s, RFC 7252
 * section 4.8.2) has passed since the first transmission, send one more copy after MAX_TRANSMIT_SPAN (45 s), and only then end the
 * exchange with COAPACE_GIVEN_UP. A peer that let the last timeout pass gets timeouts no shorter than RFC 7252's until it answers.
 *
 * Bodies. tide, newreno and rfc9177 are for the blocks of a body (RFC 7959, RFC 9177), each of which is an exchange. As many may be
 * under way as nstart of coapace_limits says, single exchanges to the same destination included, and one at least. A block whose
 * last copy departed overtaken_us before a copy that was answered is lost: coapace_on_retransmit is due at once, before its
 * timeout, as soon as there is a place for it. Copies of a block have Message IDs of their own, so that each answer tells which
 * copy it answers.
 *
 * Errors. A function that returns int returns an enum coapace_status: COAPACE_OK, or the mistake. A call that returns a
 * mistake changes nothing, with three exceptions. It writes a timeout of 3 s (the longest first timeout of RFC 7252
 * section 4.8), so that a caller who ignores the status still waits. A mechanism that could not be chosen counts as not
 * initialised, and so does an exchange that could not be started. A null pointer, an unknown number, memory that is zero, a
 * state of another mechanism and an exchange that is over are noticed. The caller answers for the rest: a pointer that is not
 * null points at what is asked for, and mechanisms, states and exchanges hold what this library wrote there, or a copy.
 * Random bytes in their place are undefined behaviour: the first byte of a state reveals most of them, not all. Do not keep
 * any of the three across versions of the library, for instance in memory that survives an update.
 *
 * Threads. Calls with different states and exchanges may run at the same time, in interrupts, too. Only coapace_init,
 * coapace_parse and coapace_set write to a mechanism. Calls with the same state or exchange must not run at the same time,
 * unless they take the state as const.
 *
 * No function allocates, blocks, recurses or uses floating point. */
#ifndef COAPACE_H
#define COAPACE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* From the registry of mechanisms: BLESS=1 cargo test -p coapace-ffi header:: */

/* The mechanisms. A number keeps its mechanism in every version. */
enum coapace_name {
    /* default: fixed timeout drawn from 2-3 s, doubled at every retransmission, nothing learnt
     * (RFC 7252 §4.2, §4.8) */
    COAPACE_DEFAULT = 0,
    /* fullbackoff1: the default timer that starts from the last backed-off timeout until a first transmission is answered
     * (Järvinen et al. 2018; Rathod 2022 §3.1.1) */
    COAPACE_FULLBACKOFF1 = 1,
    /* fullbackoff2: like fullbackoff1, but each answer to a first transmission only halves the kept timeout
     * (Järvinen et al. 2018; Rathod 2022 §3.1.2) */
    COAPACE_FULLBACKOFF2 = 2,
    /* gst-coap: like fullbackoff2, but divided by 2, then 4, then 8 while answers to first transmissions follow each other
     * (Rathod 2022 §3.2, GST-CoAP) */
    COAPACE_GST_COAP = 3,
    /* linux-rto: TCP's timer: SRTT + 4·RTTVAR of unambiguous samples, a backed-off RTO kept until the next of them
     * (RFC 6298) */
    COAPACE_LINUX_RTO = 4,
    /* basic-rto: one and a half times the last round-trip time, nothing smoothed
     * (Californium 3, BasicRto) */
    COAPACE_BASIC_RTO = 5,
    /* peak-hopper: hops up with the round-trip time at once, fades slowly from the peak
     * (Ekström, Ludwig 2004, The Peak-Hopper) */
    COAPACE_PEAK_HOPPER = 6,
    /* coap-eifel: gain 1/3, up at once and down slowly, never below the last round-trip time
     * (Rathod 2022 §4.3; Ludwig, Sklower 2000) */
    COAPACE_COAP_EIFEL = 7,
    /* cocoa: strong and weak estimator blended into one RTO, variable backoff factor, ageing
     * (draft-ietf-core-cocoa-03) */
    COAPACE_COCOA = 8,
    /* cocoa0: the first CoCoA: strong and weak estimates weigh the same, any exchange is a sample, always doubled
     * (draft-bormann-core-cocoa-00; Betzler et al. 2015 §2.2) */
    COAPACE_COCOA0 = 9,
    /* cocoa-plus: CoCoA as first published: one retransmission at most for a weak sample, factor 1.3 above 3 s
     * (Betzler, Gomez, Demirkol, Paradells 2015, CoCoA+) */
    COAPACE_COCOA_PLUS = 10,
    /* cocoa-strong: CoCoA without the weak estimator: only exchanges without a retransmission are samples
     * (Bhalerao et al. 2016; Californium, CocoaStrong) */
    COAPACE_COCOA_STRONG = 11,
    /* fullbackoff1-cocoa: CoCoA that takes over the timeout that a retransmitted exchange was answered after
     * (Järvinen et al. 2018; Rathod 2022 §5.1) */
    COAPACE_FULLBACKOFF1_COCOA = 12,
    /* fullbackoff2-cocoa: CoCoA that takes over the timeout that a retransmitted exchange was answered after, if it is the longer
     * (Järvinen et al. 2018; Rathod 2022 §5.1) */
    COAPACE_FULLBACKOFF2_COCOA = 13,
    /* gsrtc: CoCoA whose strong weight grows with every strong sample in a row, from 1/2 to 0.99
     * (Rathod 2022 §5.2, GSRTC) */
    COAPACE_GSRTC = 14,
    /* cocoa-i: CoCoA whose band moves with the strong estimate, with a fresh Message ID for every retransmission
     * (Meng et al. 2017, CoCoA-I) */
    COAPACE_COCOA_I = 15,
    /* cocoa-plus-plus: an RTO that grows while the least and greatest round-trip times rise, and shrinks else
     * (Rathod 2022 §6, CoCoA++; Hayes, Armitage 2011) */
    COAPACE_COCOA_PLUS_PLUS = 16,
    /* fasor: a fast RTO near the round-trip time, a slow one to drain a congested link, chosen by recent retransmissions
     * (draft-ietf-core-fasor-02; Raitahila 2019) */
    COAPACE_FASOR = 17,
    /* fasor-token: FASOR with the transmission's ordinal in the token, so that every answer is a sample
     * (draft-ietf-core-fasor-02; Raitahila 2019) */
    COAPACE_FASOR_TOKEN = 18,
    /* fasor-option: FASOR with the transmission's ordinal in an elective option, where the peer echoes it
     * (draft-ietf-core-fasor-02; Raitahila 2019) */
    COAPACE_FASOR_OPTION = 19,
    /* rtt-coap: a pacing rate steered by short- and long-term round-trip time and loss, several exchanges outstanding
     * (Ancillotti, Bolettieri, Bruno 2018, RTT-CoAP) */
    COAPACE_RTT_COAP = 20,
    /* ebb: soon again where the round-trip time shows no queue; where it shows one, ACK_TIMEOUT at least, and what a loss led to is held
     * (Coapace, docs/ebb.md) */
    COAPACE_EBB = 21,
    /* ebb-plain: `ebb` without the ordinal in the token of retransmissions
     * (Coapace, docs/ebb.md) */
    COAPACE_EBB_PLAIN = 22,
    /* tide: a window that keeps the queue short, ignores errors of links, and competes with flows that fill the queue
     * (Coapace, docs/bulk.md) */
    COAPACE_TIDE = 23,
    /* newreno: the window of TCP in datagrams: slow start, congestion avoidance, halved by a round trip with losses
     * (RFC 5681, RFC 6582, RFC 6298, RFC 6928) */
    COAPACE_NEWRENO = 24,
    /* rfc9177: sets of ten requests, and a wait of 2-3 s after each that is not answered as a whole; nothing learnt
     * (RFC 9177 §7.2) */
    COAPACE_RFC9177 = 25
};

/* The number of mechanisms, one more than the highest enum coapace_name. */
#define COAPACE_NAMES 26

/* The size of a state in bytes. There is one for each destination. */
#define COAPACE_STATE_SIZE_DEFAULT 1
#define COAPACE_STATE_SIZE_FULLBACKOFF1 7
#define COAPACE_STATE_SIZE_FULLBACKOFF2 7
#define COAPACE_STATE_SIZE_GST_COAP 7
#define COAPACE_STATE_SIZE_LINUX_RTO 22
#define COAPACE_STATE_SIZE_BASIC_RTO 6
#define COAPACE_STATE_SIZE_PEAK_HOPPER 22
#define COAPACE_STATE_SIZE_COAP_EIFEL 21
#define COAPACE_STATE_SIZE_COCOA 31
#define COAPACE_STATE_SIZE_COCOA0 31
#define COAPACE_STATE_SIZE_COCOA_PLUS 31
#define COAPACE_STATE_SIZE_COCOA_STRONG 31
#define COAPACE_STATE_SIZE_FULLBACKOFF1_COCOA 31
#define COAPACE_STATE_SIZE_FULLBACKOFF2_COCOA 31
#define COAPACE_STATE_SIZE_GSRTC 31
#define COAPACE_STATE_SIZE_COCOA_I 31
#define COAPACE_STATE_SIZE_COCOA_PLUS_PLUS 60
#define COAPACE_STATE_SIZE_FASOR 18
#define COAPACE_STATE_SIZE_FASOR_TOKEN 18
#define COAPACE_STATE_SIZE_FASOR_OPTION 18
#define COAPACE_STATE_SIZE_RTT_COAP 32
#define COAPACE_STATE_SIZE_EBB 21
#define COAPACE_STATE_SIZE_EBB_PLAIN 21
#define COAPACE_STATE_SIZE_TIDE 64
#define COAPACE_STATE_SIZE_NEWRENO 32
#define COAPACE_STATE_SIZE_RFC9177 21
/* The largest of these sizes. */
#define COAPACE_STATE_SIZE_MAX 64
/* The size of a struct coapace_exchange in bytes. There is one for each exchange under way. */
#define COAPACE_EXCHANGE_SIZE 21
/* The size of a struct coapace_mechanism in bytes. A program has one. */
#define COAPACE_MECHANISM_SIZE 136

/* The version of this header: as text, and as a number for #if, 10000 * major + 100 * minor + patch. */
#define COAPACE_VERSION "0.1.0"
#define COAPACE_VERSION_NUMBER 100

/* The end of the part from the registry. */

/* A mechanism and its parameters. Opaque. */
struct coapace_mechanism {
    uint64_t opaque[COAPACE_MECHANISM_SIZE / 8];
};

/* The type of the state of a destination: COAPACE_STATE(COAPACE_STATE_SIZE_FASOR) peers[32]; The size is that of the
 * mechanism, or COAPACE_STATE_SIZE_MAX if it is chosen at run time. Its alignment is 1. Opaque. */
#define COAPACE_STATE(size) \
    struct { \
        unsigned char opaque[size]; \
    }

/* An exchange under way. Its alignment is 1. Opaque. */
struct coapace_exchange {
    unsigned char opaque[COAPACE_EXCHANGE_SIZE];
};

/* The arguments that come with every call: time, randomness and load. */
struct coapace_cue {
    uint64_t now_us;      /* the present moment */
    uint32_t draw;        /* uniformly random, in units of 2^-32; drawn again for every call */
    uint16_t outstanding; /* exchanges to this destination that have departed and are not over, this one included */
};

/* The facts of an acknowledgement. */
struct coapace_sample {
    uint64_t since_first_us;    /* time since the first transmission departed */
    uint64_t since_last_us;     /* time since the last transmission departed */
    uint64_t since_answered_us; /* time since the transmission that was answered departed; if has_answered */
    uint8_t retransmits;        /* retransmissions made; 255 if more */
    uint8_t has_answered;       /* not 0 if a marking tells which transmission was answered */
    uint8_t answered;           /* the ordinal of that transmission; if has_answered */
};

/* The ways in which an exchange can end. 0 is none of them, so that a field that was not filled in is noticed. */
enum coapace_end {
    COAPACE_ACKED = 1,     /* an acknowledgement or a response arrived */
    COAPACE_RESET = 2,     /* a Reset arrived */
    COAPACE_CANCELLED = 3, /* the application lost interest */
    COAPACE_GIVEN_UP = 4   /* the timeout after the last retransmission passed */
};

/* The end of an exchange. */
struct coapace_outcome {
    struct coapace_sample sample; /* read only with COAPACE_ACKED */
    uint8_t end;                  /* an enum coapace_end */
};

/* The way in which a transmission carries its ordinal, so that an answer tells which transmission it answers. With
 * COAPACE_MARKING_TOKEN_ON_RETRANSMIT an answer without the byte is to the first: has_answered 1, answered 0. A stack that cannot
 * mark leaves has_answered at 0; the mechanism then learns less. */
enum coapace_marking {
    COAPACE_MARKING_NONE = 0,                /* no marking: all transmissions of an exchange are the same bytes */
    COAPACE_MARKING_TOKEN = 1,               /* the ordinal is the last byte of the token */
    COAPACE_MARKING_TOKEN_ON_RETRANSMIT = 2, /* the ordinal is the last byte of the token, in retransmissions alone */
    COAPACE_MARKING_OPTION = 3,              /* the ordinal is in the Rexmit-Cnt option */
    COAPACE_MARKING_FRESH_MESSAGE_ID = 4     /* every transmission has a Message ID of its own */
};

/* The limits to keep towards a destination. */
struct coapace_limits {
    uint64_t next_confirmable_us; /* no confirmable message may depart before this moment; 0 without pacing */
    uint64_t non_gap_us;          /* least time between two non-confirmable messages that nothing answers */
    uint32_t overtaken_us;        /* an exchange is lost if one that departed so much later was answered; 0 without */
    uint16_t nstart;              /* maximum number of outstanding exchanges, in place of NSTART; if has_nstart */
    uint8_t has_nstart;           /* 1 if the mechanism replaces NSTART, else 0 */
    uint8_t marking;              /* an enum coapace_marking */
};

/* The estimates of a mechanism for a destination. An unknown one is 0. */
struct coapace_gauges {
    uint64_t rto_us;      /* the RTO that the next exchange starts from, before its random part */
    uint64_t srtt_us;     /* the smoothed round-trip time; if has_srtt */
    uint64_t rttvar_us;   /* the variation of the round-trip time; if has_rttvar */
    uint32_t rate_per_ks; /* the pacing rate in messages per 1000 s; if has_rate */
    uint8_t has_srtt;     /* 1 once it was measured, else 0 */
    uint8_t has_rttvar;   /* 1 once it was measured, else 0 */
    uint8_t has_rate;     /* 1 if the mechanism has one, else 0 */
};

/* The status of a call. */
enum coapace_status {
    COAPACE_OK = 0,
    COAPACE_NULL_POINTER = 1,      /* a pointer is null */
    COAPACE_UNKNOWN_MECHANISM = 2, /* the library has no mechanism of this name or number; it may have been left out */
    COAPACE_NO_PARAMETERS = 3,     /* the library was built without parameters */
    COAPACE_NOT_TEXT = 4,          /* a text is not UTF-8 */
    COAPACE_NOT_AN_ASSIGNMENT = 5, /* the text behind the colon is not parameter=value,... */
    COAPACE_UNKNOWN_PARAMETER = 6, /* the mechanism has no such parameter */
    COAPACE_UNKNOWN_PRESET = 7,    /* the mechanism has no such preset */
    COAPACE_BAD_VALUE = 8,         /* the parameter does not accept this value */
    COAPACE_BAD_MECHANISM = 9,     /* the mechanism is not initialised */
    COAPACE_BAD_STATE = 10,        /* the state is not initialised, or of another mechanism */
    COAPACE_BAD_EXCHANGE = 11,     /* the exchange was not started, has ended, or belongs to another mechanism */
    COAPACE_BAD_OUTCOME = 12,      /* there is no end of this number */
    COAPACE_TOO_SMALL = 13         /* there are fewer bytes than a state of this mechanism takes */
};

/* Returns a status in words, without a full stop. An unknown number has words, too. Never null. */
const char *coapace_strerror(int status);

/* Returns the version of the library, which should be COAPACE_VERSION. Never null. */
const char *coapace_version(void);

/* Return the name of a mechanism ("cocoa-plus"), its description in one line, and its source, in UTF-8. `name` is an enum
 * coapace_name. They return null if the library has none of this number. */
const char *coapace_name(int name);
const char *coapace_summary(int name);
const char *coapace_source(int name);

/* Chooses a mechanism, an enum coapace_name, with its default parameters.
 * COAPACE_NULL_POINTER, COAPACE_UNKNOWN_MECHANISM. */
int coapace_init(struct coapace_mechanism *mechanism, int name);

/* Chooses a mechanism by a text that ends with a zero: NAME or NAME:parameter=value,... such as
 * "cocoa:preset=libcoap-2019,max_rto=10s". Settings apply from left to right. A library without parameters takes names
 * alone. COAPACE_NULL_POINTER to COAPACE_BAD_VALUE. */
int coapace_parse(struct coapace_mechanism *mechanism, const char *text);

/* Sets one parameter, or a `preset`. States stay valid. COAPACE_NULL_POINTER, COAPACE_NO_PARAMETERS, COAPACE_NOT_TEXT,
 * COAPACE_UNKNOWN_PARAMETER to COAPACE_BAD_MECHANISM. */
int coapace_set(struct coapace_mechanism *mechanism, const char *parameter, const char *value);

/* Returns the size of a state of this mechanism in bytes, at most COAPACE_STATE_SIZE_MAX, or 0 if it is not initialised. */
size_t coapace_state_size(const struct coapace_mechanism *mechanism);

/* Writes the state of a destination before the first exchange with it, to `size` bytes of any alignment.
 * COAPACE_NULL_POINTER, COAPACE_BAD_MECHANISM, COAPACE_TOO_SMALL. */
int coapace_state_init(const struct coapace_mechanism *mechanism, void *state, size_t size);

/* Starts an exchange, as its first transmission departs. Writes the time to wait for an answer. Exchanges to one destination
 * may overlap. COAPACE_NULL_POINTER, COAPACE_BAD_MECHANISM, COAPACE_BAD_STATE. */
int coapace_on_start(const struct coapace_mechanism *mechanism, void *state, struct coapace_exchange *exchange,
                     const struct coapace_cue *cue, uint64_t *timeout_us);

/* Backs off, as the timeout has passed and a retransmission departs. Writes the next time to wait. The caller decides how
 * often to retransmit (MAX_RETRANSMIT). COAPACE_NULL_POINTER, COAPACE_BAD_MECHANISM to COAPACE_BAD_EXCHANGE. */
int coapace_on_retransmit(const struct coapace_mechanism *mechanism, void *state, struct coapace_exchange *exchange,
                          const struct coapace_cue *cue, uint64_t *timeout_us);

/* Ends an exchange. Its bytes are free for another. COAPACE_NULL_POINTER, COAPACE_BAD_MECHANISM to COAPACE_BAD_OUTCOME. */
int coapace_on_end(const struct coapace_mechanism *mechanism, void *state, struct coapace_exchange *exchange,
                   const struct coapace_outcome *outcome, const struct coapace_cue *cue);

/* Writes the longest time from the first transmission to the last of `retransmits` retransmissions in any state:
 * MAX_TRANSMIT_SPAN (RFC 7252 section 4.8.2) with the timeouts of this mechanism.
 * COAPACE_NULL_POINTER, COAPACE_BAD_MECHANISM. */
int coapace_max_span(const struct coapace_mechanism *mechanism, uint8_t retransmits, uint64_t *span_us);

/* Writes the limits to keep towards this destination. They may change with every call that takes the state.
 * COAPACE_NULL_POINTER, COAPACE_BAD_MECHANISM, COAPACE_BAD_STATE. */
int coapace_limits(const struct coapace_mechanism *mechanism, const void *state, struct coapace_limits *limits);

/* Writes the estimates for this destination, to be shown.
 * COAPACE_NULL_POINTER, COAPACE_BAD_MECHANISM, COAPACE_BAD_STATE. */
int coapace_gauges(const struct coapace_mechanism *mechanism, const void *state, struct coapace_gauges *gauges);

#ifdef __cplusplus
}
#endif

#endif
