/* Coapace: congestion control for CoAP (RFC 7252), in one file of C99. Licence: MIT OR Apache-2.0.
 *
 * Add coapace.c and coapace.h to a program. A mechanism computes how long to wait for an acknowledgement before a message is
 * sent again, and learns from the answers. The file has no sockets, no clock, no heap, no random numbers, no floating point and
 * no state of its own. The caller brings the time and keeps the memory:
 *
 *   - one struct coapace_mechanism, chosen once;
 *   - for each destination a state of a few bytes: COAPACE_STATE(size);
 *   - for each exchange under way a struct coapace_exchange.
 *
 * Words: an exchange is one confirmable message with its retransmissions and its acknowledgement. The ordinal of a
 * transmission is its number within the exchange, 0 for the first. A marking is the way in which a transmission carries its
 * ordinal. A draw is a random number. A span is a length of time, a moment is a point in time.
 *
 * Three ways to use it:
 *
 *   1. The stack arms a timeout for each transmission: coapace_on_start, coapace_on_retransmit, coapace_on_end. Beside them,
 *      coapace_may_start has NSTART and pacing, coapace_on_timeout decides when to give up, coapace_mark_token and
 *      coapace_match_token mark copies. example.c is a client that uses all of them.
 *   2. The stack retransmits by itself, from numbers that the program sets, and reports nothing but the end:
 *      coapace_parameters before each exchange, coapace_observed after it.
 *   3. The blocks of a body (RFC 7959): tide. See Bodies.
 *
 * The Rust library of crates/ffi has the same functions, types and constants, but for those below the mark "Not in crates/ffi".
 * It has all mechanisms, parameters, and descriptions of mechanisms. Sizes of memory differ. A program takes the other library by
 * its include path and its linker line.
 *
 * Time. Every time is in microseconds, of 64 bits, and saturates. A moment (now_us) counts from an origin that the caller
 * chooses once. If it runs backwards, a mechanism ages its estimates too soon. This does no other harm. A clock of 32 bits that
 * counts milliseconds, which wraps after 49.7 days, becomes such a time by coapace_clock.
 *
 * Bodies. tide is for the blocks of a body, each of which is an exchange. As many may be under way as nstart of coapace_limits
 * says, single exchanges to the same destination included, and one at least. A block whose last copy departed overtaken_us
 * before a copy that was answered is lost: coapace_on_retransmit is due at once, before its timeout, as soon as there is a place
 * for it. Copies of a block have Message IDs of their own, so that each answer tells which copy it answers.
 *
 * Errors. A function that returns int returns an enum coapace_status: COAPACE_OK, or the mistake. A call that returns a
 * mistake changes nothing, with three exceptions. It writes a timeout of 3 s (the longest first timeout of RFC 7252
 * section 4.8), so that a caller who ignores the status still waits. A mechanism that could not be chosen counts as not
 * initialised, and so does an exchange that could not be started. A null pointer, an unknown number, memory that is zero, a
 * state of another mechanism and an exchange that is over are noticed. The caller answers for the rest: mechanisms, states and
 * exchanges hold what this library wrote there, or a copy. A struct coapace_mechanism holds an address, so it does not outlive
 * the program. States and exchanges are not to be kept across versions of the library.
 *
 * Threads. Calls with different states and exchanges may run at the same time, in interrupts, too. Only coapace_init,
 * coapace_parse and coapace_set write to a mechanism. Calls with the same state or exchange must not run at the same time,
 * unless they take the state as const. No function allocates, blocks or recurses.
 *
 * Mechanisms. COAPACE_WITH_EBB, COAPACE_WITH_DEFAULT and so on are 0 or 1. If the compiler is given none of them, all are 1 but
 * COAPACE_WITH_TIDE, which needs coapace_tide.h beside coapace.c. If it is given one (-DCOAPACE_WITH_EBB=1), the others are 0.
 * They change the size of the code, and neither functions nor sizes of memory. */
#ifndef COAPACE_H
#define COAPACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined COAPACE_WITH_DEFAULT || defined COAPACE_WITH_LINUX_RTO || defined COAPACE_WITH_COCOA || \
    defined COAPACE_WITH_FASOR || defined COAPACE_WITH_EBB || defined COAPACE_WITH_TIDE
#define COAPACE_WITH_OTHERS 0
#else
#define COAPACE_WITH_OTHERS 1
#endif
#ifndef COAPACE_WITH_DEFAULT
#define COAPACE_WITH_DEFAULT COAPACE_WITH_OTHERS
#endif
#ifndef COAPACE_WITH_LINUX_RTO
#define COAPACE_WITH_LINUX_RTO COAPACE_WITH_OTHERS
#endif
#ifndef COAPACE_WITH_COCOA
#define COAPACE_WITH_COCOA COAPACE_WITH_OTHERS
#endif
#ifndef COAPACE_WITH_FASOR /* fasor, fasor-token and fasor-option */
#define COAPACE_WITH_FASOR COAPACE_WITH_OTHERS
#endif
#ifndef COAPACE_WITH_EBB /* ebb and ebb-plain */
#define COAPACE_WITH_EBB COAPACE_WITH_OTHERS
#endif
#ifndef COAPACE_WITH_TIDE
#define COAPACE_WITH_TIDE 0
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The version: as text, and as a number for #if, 10000 * major + 100 * minor + patch. */
#define COAPACE_VERSION "0.1.0"
#define COAPACE_VERSION_NUMBER 100

/* The mechanisms. A number keeps its mechanism in every version. The missing numbers are those of crates/ffi. */
enum coapace_name {
    COAPACE_DEFAULT = 0,      /* a timeout of 2 to 3 s, doubled at every retransmission (RFC 7252) */
    COAPACE_LINUX_RTO = 4,    /* the timer of TCP (RFC 6298) */
    COAPACE_COCOA = 8,        /* draft-ietf-core-cocoa-03 */
    COAPACE_FASOR = 17,       /* draft-ietf-core-fasor-02 */
    COAPACE_FASOR_TOKEN = 18, /* fasor with the ordinal in the token of retransmissions */
    COAPACE_FASOR_OPTION = 19, /* fasor with the ordinal in an option */
    COAPACE_EBB = 21,         /* docs/ebb.md, with the ordinal in the token of retransmissions */
    COAPACE_EBB_PLAIN = 22,   /* ebb without a marking */
    COAPACE_TIDE = 23         /* docs/bulk.md, for the blocks of bodies */
};

/* One more than the highest enum coapace_name. */
#define COAPACE_NAMES 26

/* The size of a state in bytes. There is one for each destination. */
#define COAPACE_STATE_SIZE_DEFAULT 1
#define COAPACE_STATE_SIZE_LINUX_RTO 16
#define COAPACE_STATE_SIZE_COCOA 31
#define COAPACE_STATE_SIZE_FASOR 18
#define COAPACE_STATE_SIZE_FASOR_TOKEN 18
#define COAPACE_STATE_SIZE_FASOR_OPTION 18
#define COAPACE_STATE_SIZE_EBB 21
#define COAPACE_STATE_SIZE_EBB_PLAIN 21
#define COAPACE_STATE_SIZE_TIDE 64
/* The largest of these sizes. */
#define COAPACE_STATE_SIZE_MAX 64
/* The size of a struct coapace_exchange in bytes. There is one for each exchange under way. */
#define COAPACE_EXCHANGE_SIZE 20

/* A mechanism. Opaque. */
struct coapace_mechanism {
    const void *opaque;
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

/* The way in which a transmission carries its ordinal, so that an answer tells which transmission it answers. A stack that
 * cannot mark leaves has_answered at 0; the mechanism then learns less. */
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
    COAPACE_NO_PARAMETERS = 3,     /* the library was built without parameters, like this one */
    COAPACE_NOT_TEXT = 4,          /* not of this library, and so are the next four */
    COAPACE_NOT_AN_ASSIGNMENT = 5,
    COAPACE_UNKNOWN_PARAMETER = 6,
    COAPACE_UNKNOWN_PRESET = 7,
    COAPACE_BAD_VALUE = 8,
    COAPACE_BAD_MECHANISM = 9, /* the mechanism is not initialised */
    COAPACE_BAD_STATE = 10,    /* the state is not initialised, or of another mechanism */
    COAPACE_BAD_EXCHANGE = 11, /* the exchange was not started, has ended, or belongs to another mechanism */
    COAPACE_BAD_OUTCOME = 12,  /* there is no end of this number */
    COAPACE_TOO_SMALL = 13     /* there are fewer bytes than a state of this mechanism takes */
};

/* Chooses a mechanism, an enum coapace_name. COAPACE_NULL_POINTER, COAPACE_UNKNOWN_MECHANISM. */
int coapace_init(struct coapace_mechanism *mechanism, int name);

/* Returns the size of a state of this mechanism in bytes, at most COAPACE_STATE_SIZE_MAX, or 0 if it is not initialised. */
size_t coapace_state_size(const struct coapace_mechanism *mechanism);

/* Writes the state of a destination before the first exchange with it, to `size` bytes of any alignment.
 * COAPACE_NULL_POINTER, COAPACE_BAD_MECHANISM, COAPACE_TOO_SMALL. */
int coapace_state_init(const struct coapace_mechanism *mechanism, void *state, size_t size);

/* Starts an exchange, as its first transmission departs. Writes the time to wait for an answer. Exchanges to one destination
 * may overlap. COAPACE_NULL_POINTER, COAPACE_BAD_MECHANISM, COAPACE_BAD_STATE. */
int coapace_on_start(const struct coapace_mechanism *mechanism, void *state, struct coapace_exchange *exchange,
                     const struct coapace_cue *cue, uint64_t *timeout_us);

/* Backs off, as the timeout has passed and a retransmission departs. Writes the next time to wait.
 * COAPACE_NULL_POINTER, COAPACE_BAD_MECHANISM to COAPACE_BAD_EXCHANGE. */
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

/* The functions from here on are made of those above, and inline. */

/* Returns the version of the library, which should be COAPACE_VERSION. Never null. */
inline const char *coapace_version(void)
{
    return COAPACE_VERSION;
}

/* Returns a status in words, without a full stop. An unknown number has words, too. Never null. */
inline const char *coapace_strerror(int status)
{
    switch (status) {
    case COAPACE_OK:
        return "ok";
    case COAPACE_NULL_POINTER:
        return "a pointer is null";
    case COAPACE_UNKNOWN_MECHANISM:
        return "the library has no mechanism of this name or number";
    case COAPACE_NO_PARAMETERS:
        return "the library was built without parameters";
    case COAPACE_BAD_MECHANISM:
        return "the mechanism is not initialised";
    case COAPACE_BAD_STATE:
        return "the state is not initialised, or of another mechanism";
    case COAPACE_BAD_EXCHANGE:
        return "the exchange was not started, has ended, or belongs to another mechanism";
    case COAPACE_BAD_OUTCOME:
        return "the end of the outcome has an invalid number";
    case COAPACE_TOO_SMALL:
        return "too few bytes for the state of this mechanism";
    default:
        return "no status of this library";
    }
}

/* Returns the name of a mechanism ("linux-rto"), or null if the library has none of this number. */
inline const char *coapace_name(int name)
{
    struct coapace_mechanism mechanism;
    if (coapace_init(&mechanism, name) != COAPACE_OK) {
        return NULL;
    }
    switch (name) {
    case COAPACE_DEFAULT:
        return "default";
    case COAPACE_LINUX_RTO:
        return "linux-rto";
    case COAPACE_COCOA:
        return "cocoa";
    case COAPACE_FASOR:
        return "fasor";
    case COAPACE_FASOR_TOKEN:
        return "fasor-token";
    case COAPACE_FASOR_OPTION:
        return "fasor-option";
    case COAPACE_EBB:
        return "ebb";
    case COAPACE_EBB_PLAIN:
        return "ebb-plain";
    default:
        return "tide";
    }
}

/* Chooses a mechanism by its name, a text that ends with a zero. COAPACE_NULL_POINTER to COAPACE_NO_PARAMETERS. */
inline int coapace_parse(struct coapace_mechanism *mechanism, const char *text)
{
    int status = mechanism != NULL && text != NULL ? COAPACE_UNKNOWN_MECHANISM : COAPACE_NULL_POINTER;
    if (mechanism != NULL) {
        (void)coapace_init(mechanism, -1);
    }
    for (int number = 0; status == COAPACE_UNKNOWN_MECHANISM && number < COAPACE_NAMES; number++) {
        const char *name = coapace_name(number), *read = text;
        while (name != NULL && *read != '\0' && *read == *name) {
            read++;
            name++;
        }
        if (name != NULL && *read == *name) {
            status = coapace_init(mechanism, number);
        }
    }
    for (; status == COAPACE_UNKNOWN_MECHANISM && *text != '\0'; text++) {
        status = *text == ':' ? COAPACE_NO_PARAMETERS : status;
    }
    return status;
}

/* Parameters are constants in this library. COAPACE_NULL_POINTER, COAPACE_NO_PARAMETERS. */
inline int coapace_set(struct coapace_mechanism *mechanism, const char *parameter, const char *value)
{
    return mechanism != NULL && parameter != NULL && value != NULL ? COAPACE_NO_PARAMETERS : COAPACE_NULL_POINTER;
}

/* Not in crates/ffi. They work with its library, too. COAPACE_HAS_PATIENCE is defined by a header that has coapace_on_timeout and
 * coapace_patient, and so on. */
#define COAPACE_HAS_CLOCK 1
#define COAPACE_HAS_MAY_START 1
#define COAPACE_HAS_PATIENCE 1
#define COAPACE_HAS_TOKENS 1
#define COAPACE_HAS_PARAMETER_FORM 1

/* A time that never comes. */
#define COAPACE_NEVER UINT64_MAX

/* A clock of milliseconds that wraps, and its time in microseconds. Zeros begin it. */
struct coapace_clock {
    uint64_t now_us;
    uint32_t ticks;
};

/* Returns the present moment by a clock that now shows `ticks` milliseconds modulo 2^32. Call it once in 49 days at least. */
static inline uint64_t coapace_clock(struct coapace_clock *clock, uint32_t ticks)
{
    clock->now_us += UINT64_C(1000) * (uint32_t)(ticks - clock->ticks);
    clock->ticks = ticks;
    return clock->now_us;
}

/* Writes how long the next exchange has to wait: 0 if it may depart now, COAPACE_NEVER if one of the `outstanding` exchanges has
 * to end first. `nstart` is the program's own NSTART, or 0 for RFC 7252's 1. Of it and the window of a mechanism the smaller counts.
 * COAPACE_NULL_POINTER, COAPACE_BAD_MECHANISM, COAPACE_BAD_STATE. */
static inline int coapace_may_start(const struct coapace_mechanism *mechanism, const void *state, uint16_t outstanding,
                                    uint16_t nstart, uint64_t now_us, uint64_t *wait_us)
{
    struct coapace_limits limits;
    int status = wait_us != NULL ? coapace_limits(mechanism, state, &limits) : COAPACE_NULL_POINTER;
    if (status != COAPACE_OK) {
        return status;
    }
    if (limits.has_nstart != 0 && (nstart == 0 || nstart > limits.nstart)) {
        nstart = limits.nstart;
    } else if (nstart == 0) {
        nstart = 1;
    }
    *wait_us = limits.next_confirmable_us > now_us ? limits.next_confirmable_us - now_us : 0;
    if (outstanding >= nstart) {
        *wait_us = COAPACE_NEVER;
    }
    return COAPACE_OK;
}

/* Patience. A mechanism says when to send a copy, not when a peer is dead. On a path of a few milliseconds its timeouts may add up
 * to a tenth of a second, so a caller that gives up after the last of them fails at every short outage, and floods a dead peer if
 * it begins again at once. With these two calls no exchange is given up sooner than RFC 7252 would, and a silent peer gets no more
 * datagrams than RFC 7252 sends: at most max_retransmit + 1 of an exchange in any MAX_TRANSMIT_SPAN (45 s).
 *
 * coapace_on_timeout says what to do as the timeout of a transmission has passed without an answer. It waits until 45 s after the
 * first transmission, has one more copy sent then, and gives up 93 s after the first transmission (MAX_TRANSMIT_WAIT). An exchange
 * whose own timeouts add up to 62 s ends without that copy. It writes the time to wait, 0 but with COAPACE_WAIT, unless the pointer
 * is null. `retransmits` counts the copies so far, `max_retransmit` is MAX_RETRANSMIT, 4 in RFC 7252.
 *
 * coapace_patient returns the time to wait after a transmission for which the mechanism says `timeout_us`, to be called after each
 * coapace_on_start and coapace_on_retransmit. `retransmits` counts this transmission if it is a copy. `is_silent`: the last timeout
 * of an exchange with this peer has passed (coapace_on_timeout was called with retransmits >= max_retransmit), and nothing came
 * from it since. */
enum coapace_action {
    COAPACE_RETRANSMIT = 1, /* send a copy, and call coapace_on_retransmit */
    COAPACE_WAIT = 2,       /* wait for an answer, and ask again after that */
    COAPACE_GIVE_UP = 3     /* end the exchange with COAPACE_GIVEN_UP */
};

/* Returns the timeout of RFC 7252: drawn from 2 to 3 s, doubled by each retransmission, 60 s at most. */
static inline uint32_t coapace_rfc7252_timeout(uint8_t retransmits, uint32_t draw)
{
    uint32_t least_us = UINT32_C(2000000) << (retransmits < 5 ? retransmits : 5);
    uint32_t timeout_us = least_us + (uint32_t)(((uint64_t)(least_us / 2) * draw + (UINT32_C(1) << 31)) >> 32);
    return timeout_us < 60000000 ? timeout_us : 60000000;
}

/* Returns the sum of `count` timeouts of RFC 7252, of which the first is given. */
static inline uint64_t coapace_rfc7252_sum(uint32_t timeout_us, unsigned count)
{
    uint64_t sum_us = 0;
    for (; count > 0; count--) {
        sum_us += timeout_us;
        timeout_us = timeout_us < 30000000 ? 2 * timeout_us : 60000000;
    }
    return sum_us;
}

static inline enum coapace_action coapace_on_timeout(uint64_t since_first_us, uint8_t retransmits, uint8_t max_retransmit,
                                                     uint64_t *wait_us)
{
    /* MAX_TRANSMIT_SPAN; without copies MAX_TRANSMIT_WAIT */
    uint64_t until_us = coapace_rfc7252_sum(3000000, max_retransmit > 0 ? max_retransmit : 1);
    enum coapace_action action = COAPACE_RETRANSMIT;
    if (retransmits >= max_retransmit && since_first_us >= coapace_rfc7252_sum(2000000, max_retransmit + 1u)) {
        action = COAPACE_GIVE_UP;
    } else if (retransmits >= max_retransmit && since_first_us < until_us) {
        action = COAPACE_WAIT;
    }
    if (wait_us != NULL) {
        *wait_us = action == COAPACE_WAIT ? until_us - since_first_us : 0;
    }
    return action;
}

static inline uint64_t coapace_patient(uint64_t timeout_us, uint64_t since_first_us, uint8_t retransmits, uint8_t max_retransmit,
                                       bool is_silent, uint32_t draw)
{
    uint64_t other_us = 0;
    if (retransmits > max_retransmit) {
        /* The rest of MAX_TRANSMIT_WAIT; if the copy is late, as long as between the least wait and that. */
        uint64_t most_us = coapace_rfc7252_sum(3000000, max_retransmit + 1u);
        timeout_us = most_us - coapace_rfc7252_sum(2000000, max_retransmit + 1u);
        other_us = most_us > since_first_us ? most_us - since_first_us : 0;
    } else if (is_silent) {
        other_us = coapace_rfc7252_timeout(retransmits, draw);
    }
    return timeout_us > other_us ? timeout_us : other_us;
}

/* Appends the ordinal of a transmission to the token of a confirmable request. `marking` is that of coapace_limits. `token` holds
 * the `length` bytes that the program chose, with room for 8. Returns the length to send. A token of 8 bytes stays unmarked. */
static inline size_t coapace_mark_token(uint8_t marking, unsigned char *token, size_t length, uint8_t ordinal)
{
    bool is_marked = marking == COAPACE_MARKING_TOKEN || (marking == COAPACE_MARKING_TOKEN_ON_RETRANSMIT && ordinal > 0);
    if (is_marked && length < 8) {
        token[length++] = ordinal;
    }
    return length;
}

/* Returns whether a token that was received answers a request with the token `own` of `length` bytes, without its ordinal. Sets
 * has_answered and answered of the sample, whose `retransmits` the caller has set. The caller sets since_answered_us from the
 * departure of that transmission. If that is not the last one and its timeout has passed, a server may have repeated an old
 * answer for a later copy (RFC 7252 section 4.5): then the caller sets has_answered to 0. */
static inline bool coapace_match_token(uint8_t marking, const unsigned char *own, size_t length, const unsigned char *received,
                                       size_t received_length, struct coapace_sample *sample)
{
    bool in_copies = marking == COAPACE_MARKING_TOKEN_ON_RETRANSMIT;
    bool is_marked = length < 8 && (in_copies || marking == COAPACE_MARKING_TOKEN);
    bool is_longer = is_marked && received_length == length + 1;
    bool matches = is_longer ? received[length] <= sample->retransmits : received_length == length && (in_copies || !is_marked);
    for (size_t i = 0; matches && i < length; i++) {
        matches = own[i] == received[i];
    }
    sample->has_answered = matches && is_marked ? 1 : 0;
    sample->answered = matches && is_longer ? received[length] : 0;
    return matches;
}

/* The parameter form: for stacks that retransmit by themselves, from the numbers of RFC 7252 section 4.8, and report nothing but
 * the end of an exchange. */
struct coapace_parameters {
    uint32_t ack_timeout_ms;    /* ACK_TIMEOUT of the next exchange. Its random part is drawn already */
    uint16_t ack_random_factor; /* ACK_RANDOM_FACTOR in 1/1000: always 1000 */
    uint16_t backoff_factor;    /* the factor from one timeout to the next, in 1/1000 */
    uint8_t max_retransmit;     /* MAX_RETRANSMIT */
};

/* Starts an exchange, as its first transmission departs, and writes the numbers to set for it. If backoff_factor is 0 before, the
 * stack takes any factor. It is then the mechanism's own, or more if four retransmissions would not last as long as those of RFC
 * 7252 (62 s at least). If the stack has a fixed factor, backoff_factor is that before (2000), and max_retransmit grows for the
 * 62 s. After a short timeout the last copy departs sooner than the 30 s of RFC 7252: for a peer that may restart meanwhile, a
 * stack adds a copy (adapters/common).
 * For single exchanges, not for tide. COAPACE_NULL_POINTER, COAPACE_BAD_MECHANISM, COAPACE_BAD_STATE. */
static inline int coapace_parameters(const struct coapace_mechanism *mechanism, void *state, struct coapace_exchange *exchange,
                                     const struct coapace_cue *cue, struct coapace_parameters *parameters)
{
    uint64_t first_us = 0, second_us = 0;
    int status = parameters != NULL ? coapace_on_start(mechanism, state, exchange, cue, &first_us) : COAPACE_NULL_POINTER;
    bool is_fixed = status == COAPACE_OK && parameters->backoff_factor != 0, is_short = true;
    if (status != COAPACE_OK) {
        return status;
    }
    parameters->ack_timeout_ms = ((uint32_t)first_us + 999) / 1000;
    parameters->ack_random_factor = 1000;
    parameters->max_retransmit = 4;
    if (!is_fixed) {
        /* The second timeout, by copies: nothing was lost yet. */
        COAPACE_STATE(COAPACE_STATE_SIZE_MAX) other_state;
        struct coapace_exchange other = *exchange;
        uint32_t factor;
        for (size_t i = 0; i < coapace_state_size(mechanism); i++) {
            other_state.opaque[i] = ((const unsigned char *)state)[i];
        }
        (void)coapace_on_retransmit(mechanism, &other_state, &other, cue, &second_us);
        factor = (uint32_t)second_us / parameters->ack_timeout_ms; /* microseconds by milliseconds: in 1/1000 */
        parameters->backoff_factor = (uint16_t)(factor < 1000 ? 1000 : factor < 60000 ? factor : 60000);
    }
    while (is_short) {
        uint32_t timeout_ms = parameters->ack_timeout_ms, left_ms = 62000;
        for (unsigned n = 0; n < parameters->max_retransmit && timeout_ms < left_ms; n++) {
            left_ms -= timeout_ms;
            timeout_ms = timeout_ms * parameters->backoff_factor / 1000;
        }
        is_short = timeout_ms < left_ms && parameters->max_retransmit < UINT8_MAX;
        parameters->max_retransmit = (uint8_t)(parameters->max_retransmit + (is_short && is_fixed ? 1 : 0));
        parameters->backoff_factor = (uint16_t)(parameters->backoff_factor + (is_short && !is_fixed ? 125 : 0));
    }
    return COAPACE_OK;
}

/* Ends an exchange of the parameter form, `elapsed_us` after its first transmission, in a way of enum coapace_end. `parameters` are
 * what the stack used; they tell how many retransmissions there were.
 * COAPACE_NULL_POINTER, COAPACE_BAD_MECHANISM to COAPACE_BAD_OUTCOME. */
static inline int coapace_observed(const struct coapace_mechanism *mechanism, void *state, struct coapace_exchange *exchange,
                                   const struct coapace_parameters *parameters, uint64_t elapsed_us, uint8_t end,
                                   const struct coapace_cue *cue)
{
    struct coapace_outcome outcome = {{elapsed_us, elapsed_us, 0, 0, 0, 0}, end};
    uint64_t timeout_us;
    uint32_t armed_ms;
    if (parameters == NULL || end < COAPACE_ACKED || end > COAPACE_GIVEN_UP) {
        return parameters == NULL ? COAPACE_NULL_POINTER : COAPACE_BAD_OUTCOME;
    }
    armed_ms = parameters->ack_timeout_ms;
    while (outcome.sample.retransmits < parameters->max_retransmit &&
           (outcome.sample.since_last_us >= UINT64_C(1000) * armed_ms || end == COAPACE_GIVEN_UP)) {
        int status = coapace_on_retransmit(mechanism, state, exchange, cue, &timeout_us);
        if (status != COAPACE_OK) {
            return status;
        }
        outcome.sample.retransmits++;
        outcome.sample.since_last_us -= UINT64_C(1000) * armed_ms;
        armed_ms = (armed_ms < 65000 ? armed_ms : 65000) * parameters->backoff_factor / 1000; /* 32 bits are enough */
    }
    return coapace_on_end(mechanism, state, exchange, &outcome, cue);
}

#ifdef __cplusplus
}
#endif

#endif
