/* Coapace: congestion control for CoAP. coapace.h is the documentation. Licence: MIT OR Apache-2.0.
 * The mechanisms do the arithmetic of the Rust crates/control/src/registry, step by step. That says why. */
#include "coapace_spans.h"

/* The state of a destination, zeros at first. It has as many of these bytes as its mechanism needs. */
struct state {
    uint8_t tag;
    struct estimator estimator; /* with cocoa: of exchanges without a copy */
    union {
        struct kept rto; /* with linux-rto and cocoa: zero before there is one */
        struct { struct kept rto, renewed; struct estimator weak; } cocoa; /* renewed: in ms modulo 2^32 */
        struct { struct kept slow; uint8_t series, ambiguous; } fasor; /* ambiguous: counts such answers */
        struct { struct kept least, held; } ebb; /* the least round-trip time; the timeout in force later */
        uint8_t tide[53];
    } of;
};

/* An exchange. The timeout is the last one; with fasor the sum of all, with default the draw. */
struct exchange {
    uint8_t tag, retransmits, factor, series, round; /* round: `ambiguous` or `round` at the start */
    struct kept timeout, fast, slow;
};

/* They have no alignment and no padding: an array of -1 bytes is an error. */
typedef char fits[sizeof(struct exchange) == COAPACE_EXCHANGE_SIZE && sizeof(struct state) == 64 ? 1 : -1];

/* A call. The sample is null for an exchange that was given up. */
struct call {
    struct state *state;
    struct exchange *exchange;
    const struct coapace_cue *cue;
    const struct coapace_sample *sample;
};

/* A mechanism. Timeouts and RTOs are spans. States and exchanges begin with its tag. */
struct kind {
    uint64_t (*arm)(const struct call *call); /* a transmission departs, the first one or a copy */
    void (*end)(const struct call *call);     /* an exchange was answered or given up */
    uint64_t (*rto)(const struct state *state);
    uint8_t tag, state_size, longest_s; /* the longest timeout; 0 for that of RFC 7252 */
};

#if COAPACE_WITH_DEFAULT
/* Every timeout is computed from the draw of the exchange, so errors of rounding do not add up. */
static uint64_t default_arm(const struct call *call)
{
    struct exchange *exchange = call->exchange;
    if (exchange->retransmits == 0) {
        keep(&exchange->timeout, call->cue->draw);
    }
    return span_of(coapace_rfc7252_timeout(exchange->retransmits, (uint32_t)load(&exchange->timeout)));
}

static void default_end(const struct call *call) { (void)call; }
static uint64_t default_rto(const struct state *state) { return (void)state, SECONDS(2); }

static const struct kind DEFAULT = {default_arm, default_end, default_rto, 1, COAPACE_STATE_SIZE_DEFAULT, 0};
#endif

#if COAPACE_WITH_LINUX_RTO || COAPACE_WITH_COCOA
static uint64_t kept_rto(const struct state *state)
{
    uint64_t rto = load(&state->of.rto);
    return rto != 0 ? rto : SECONDS(2);
}
#endif

#if COAPACE_WITH_LINUX_RTO
static uint64_t linux_arm(const struct call *call)
{
    uint64_t rto = kept_rto(call->state), backed_off = least(2 * load(&call->exchange->timeout), SECONDS(60));
    if (call->exchange->retransmits == 0) {
        return keep(&call->exchange->timeout, rto);
    }
    /* Exchanges that overlap lose the same packets. Their backoffs do not add up: the longest is kept. */
    keep(&call->state->of.rto, most(rto, backed_off));
    return keep(&call->exchange->timeout, backed_off);
}

static void linux_end(const struct call *call)
{
    uint64_t rtt = clear_rtt(call->sample);
    if (rtt != 0) {
        learn(&call->state->estimator, rtt, 1, 2);
        keep(&call->state->of.rto, estimate(&call->state->estimator, 4, SECONDS(1), SECONDS(60)));
    }
}

static const struct kind LINUX_RTO = {linux_arm, linux_end, kept_rto, 2, COAPACE_STATE_SIZE_LINUX_RTO, 60};
#endif

#if COAPACE_WITH_COCOA
/* Returns a time in ms modulo 2^32, by a long division in digits of 16 bits: processors divide 32 bits. */
static uint32_t ms_of(uint64_t us)
{
    uint32_t middle = (uint32_t)(us >> 32) % 1000 << 16 | ((uint32_t)us >> 16);
    return (middle / 1000 << 16) + (middle % 1000 << 16 | ((uint32_t)us & 0xffff)) / 1000;
}

/* Ages an RTO that was not renewed. Below 1 s it doubles after 16 RTO. Above 3 s it halves after 4 RTO. */
static void cocoa_age(struct state *state, uint64_t now_us)
{
    uint64_t rto = load(&state->of.rto), patience_us;
    uint64_t idle_us = UINT64_C(1000) * (uint32_t)(ms_of(now_us) - load(&state->of.cocoa.renewed));
    while (rto < SECONDS(1) || rto > SECONDS(3)) {
        patience_us = us_of(rto) * (rto < SECONDS(1) ? 16 : 4);
        if (idle_us <= patience_us) {
            return;
        }
        idle_us -= patience_us;
        rto = keep(&state->of.rto, rto < SECONDS(1) ? 2 * rto : SECONDS(1) + part(rto, 1));
        keep(&state->of.cocoa.renewed, ms_of(now_us - least(now_us, idle_us)));
    }
}

static uint64_t cocoa_arm(const struct call *call)
{
    struct exchange *exchange = call->exchange;
    uint64_t timeout = load(&exchange->timeout), times = most(call->cue->outstanding, 1);
    if (exchange->retransmits > 0) { /* a first timeout of more than 32 s stays */
        timeout = most(timeout, least(part(timeout * exchange->factor, 1), SECONDS(32)));
        return keep(&exchange->timeout, timeout);
    }
    if (load(&call->state->of.rto) != 0) {
        cocoa_age(call->state, call->cue->now_us);
        times = 1; /* before the first sample, the k-th exchange under way waits k times the RTO */
    }
    timeout = kept_rto(call->state);
    exchange->factor = timeout < SECONDS(1) ? 6 : timeout > SECONDS(3) ? 3 : 4; /* in halves */
    timeout *= times;
    return keep(&exchange->timeout, least(timeout + drawn(part(timeout, 1), call->cue->draw), SECONDS(60)));
}

static void cocoa_end(const struct call *call)
{
    struct state *state = call->state;
    bool is_strong = call->sample != NULL && call->sample->retransmits == 0;
    struct estimator *estimator = is_strong ? &state->estimator : &state->of.cocoa.weak;
    if (call->sample != NULL && call->sample->retransmits <= 2) {
        unsigned weight = is_strong ? 2 : 1; /* in quarters of the RTO; K, 4 or 1, is its square */
        uint64_t rto = kept_rto(state);
        learn(estimator, rtt_of(call->sample->since_first_us), 1, 2);
        rto = part(rto * (4 - weight) + estimate(estimator, weight * weight, 0, LONGEST) * weight, 2);
        keep(&state->of.rto, least(most(rto, MS(50)), SECONDS(60)));
        keep(&state->of.cocoa.renewed, ms_of(call->cue->now_us));
    }
}

static const struct kind COCOA = {cocoa_arm, cocoa_end, kept_rto, 3, COAPACE_STATE_SIZE_COCOA, 60};
#endif

#if COAPACE_WITH_FASOR
/* The series of timeouts of an exchange. f is the fast RTO with its dither, s the slow RTO:
 * f, 2f, 4f...; f, max(s, 2f), 2f, 4f...; s, f, 2f, 4f... */
enum { FAST, FAST_SLOW_FAST, SLOW_FAST };

static uint64_t fasor_rto(const struct state *state)
{
    uint64_t rto = estimate(&state->estimator, 4, MS(50), SECONDS(60));
    return load(&state->estimator.srtt) != 0 ? rto : SECONDS(2);
}

static uint64_t fasor_arm(const struct call *call)
{
    const struct state *state = call->state;
    struct exchange *exchange = call->exchange;
    unsigned doublings = exchange->retransmits;
    uint64_t timeout, srtt = load(&state->estimator.srtt);
    if (doublings == 0) {
        srtt = srtt != 0 ? srtt : (SECONDS(2) + 1) / 3;
        timeout = fasor_rto(state) + part(srtt, 2) + drawn(srtt - part(srtt, 2), call->cue->draw);
        keep(&exchange->fast, least(timeout, LONGEST));
        keep(&exchange->timeout, 0);
        keep(&exchange->slow, load(&state->of.fasor.slow));
        exchange->series = state->of.fasor.series;
        exchange->round = state->of.fasor.ambiguous;
    }
    timeout = load(&exchange->fast);
    if (exchange->series == SLOW_FAST && doublings == 0) {
        timeout = load(&exchange->slow);
    } else if (exchange->series == FAST_SLOW_FAST && doublings == 1) {
        timeout = most(load(&exchange->slow), 2 * timeout);
    }
    doublings -= exchange->series != FAST && doublings > 0 ? 1 : 0;
    for (; doublings > 0 && timeout < SECONDS(60); doublings--) {
        timeout *= 2;
    }
    timeout = least(timeout, SECONDS(60));
    keep(&exchange->timeout, least(load(&exchange->timeout) + timeout, LONGEST));
    return timeout;
}

static void fasor_end(const struct call *call)
{
    struct state *state = call->state;
    uint64_t rtt = clear_rtt(call->sample), elapsed = load(&call->exchange->timeout);
    if (rtt != 0) {
        learn(&state->estimator, rtt, 3, 2);
    }
    if (call->sample != NULL && call->sample->retransmits == 0) {
        /* An exchange that began before the last ambiguous answer does not return to the fast RTO. */
        if (call->exchange->round == state->of.fasor.ambiguous) {
            state->of.fasor.series = FAST;
        }
        return;
    }
    if (call->sample != NULL) {
        elapsed = rtt_of(call->sample->since_first_us);
    }
    keep(&state->of.fasor.slow, least(part(3 * elapsed, 1), LONGEST));
    state->of.fasor.ambiguous++;
    state->of.fasor.series = state->of.fasor.series == FAST ? FAST_SLOW_FAST : SLOW_FAST;
}

static const struct kind FASOR = {fasor_arm, fasor_end, fasor_rto, 4, COAPACE_STATE_SIZE_FASOR, 60};
#endif

#if COAPACE_WITH_EBB
/* Returns whether there is no standing queue, by SRTT and by how late an answer came. Not before a sample. */
static bool ebb_is_calm(const struct state *state, uint64_t late)
{
    uint64_t shortest = load(&state->of.ebb.least), longer = most(load(&state->estimator.srtt), late);
    return shortest != 0 && (longer * 20 <= shortest * 23 + 10 || longer <= shortest + MS(60));
}

static uint64_t ebb_rto(const struct state *state)
{
    uint64_t rto = SECONDS(2); /* also the least RTO with a queue */
    if (load(&state->of.ebb.least) != 0) {
        rto = estimate(&state->estimator, 3, ebb_is_calm(state, 0) ? MS(50) : rto, SECONDS(247));
    }
    return most(rto, load(&state->of.ebb.held));
}

static uint64_t ebb_arm(const struct call *call)
{
    struct exchange *exchange = call->exchange;
    uint64_t timeout = load(&exchange->timeout), rto;
    if (exchange->retransmits == 0) {
        rto = ebb_rto(call->state);
        timeout = least(rto + drawn(part(rto, 2), call->cue->draw), SECONDS(247));
    } else {
        /* Twice the factor of the backoff: 3/2, or while nothing is measured 3 and then 2. */
        unsigned factor = exchange->retransmits == 1 ? 6 : 4;
        factor = load(&call->state->of.ebb.least) != 0 ? 3 : factor;
        timeout = most(timeout, least(part(timeout * factor, 1), SECONDS(60)));
    }
    return keep(&exchange->timeout, timeout);
}

static void ebb_end(const struct call *call)
{
    struct state *state = call->state;
    const struct coapace_sample *sample = call->sample;
    uint64_t rtt = clear_rtt(sample), late = 0, shortest = load(&state->of.ebb.least);
    bool holds = true;
    if (sample != NULL) {
        bool is_spurious = sample->has_answered != 0 && sample->answered < sample->retransmits;
        if (rtt == 0 && sample->retransmits == 1 && 2 * span_of(sample->since_last_us) < shortest) {
            /* The copy cannot have been answered in half of the shortest time before. The first one was. */
            rtt = rtt_of(sample->since_first_us);
            is_spurious = true;
        }
        if (rtt != 0) {
            learn(&state->estimator, rtt, 1, 1);
            /* It rises by 1/64 of its distance to SRTT, so that a longer route is learnt. */
            shortest = shortest != 0 ? blend(shortest, load(&state->estimator.srtt), 6) : rtt;
            keep(&state->of.ebb.least, least(shortest, rtt));
        } else {
            late = span_of(sample->since_last_us);
        }
        holds = sample->retransmits > 0 && !is_spurious && !ebb_is_calm(state, late);
    }
    keep(&state->of.ebb.held, holds ? load(&call->exchange->timeout) : 0);
}

static const struct kind EBB = {ebb_arm, ebb_end, ebb_rto, 5, COAPACE_STATE_SIZE_EBB, 247};
#endif

#if COAPACE_WITH_TIDE
#include "coapace_tide.h"
#endif

/* The mechanisms of this library. A struct coapace_mechanism points at one. */
struct entry {
    const struct kind *kind;
    uint8_t number, marking;
};

static const struct entry ENTRIES[] = {
#if COAPACE_WITH_DEFAULT
    {&DEFAULT, COAPACE_DEFAULT, COAPACE_MARKING_NONE},
#endif
#if COAPACE_WITH_LINUX_RTO
    {&LINUX_RTO, COAPACE_LINUX_RTO, COAPACE_MARKING_NONE},
#endif
#if COAPACE_WITH_COCOA
    {&COCOA, COAPACE_COCOA, COAPACE_MARKING_NONE},
#endif
#if COAPACE_WITH_FASOR
    {&FASOR, COAPACE_FASOR, COAPACE_MARKING_NONE},
    {&FASOR, COAPACE_FASOR_TOKEN, COAPACE_MARKING_TOKEN_ON_RETRANSMIT},
    {&FASOR, COAPACE_FASOR_OPTION, COAPACE_MARKING_OPTION},
#endif
#if COAPACE_WITH_EBB
    {&EBB, COAPACE_EBB, COAPACE_MARKING_TOKEN_ON_RETRANSMIT},
    {&EBB, COAPACE_EBB_PLAIN, COAPACE_MARKING_NONE},
#endif
#if COAPACE_WITH_TIDE
    {&TIDE, COAPACE_TIDE, COAPACE_MARKING_NONE},
#endif
};

/* The inline functions that crates/ffi has: programs that were compiled with its header need them, too. */
extern inline const char *coapace_version(void);
extern inline const char *coapace_strerror(int);
extern inline const char *coapace_name(int);
extern inline int coapace_parse(struct coapace_mechanism *, const char *);
extern inline int coapace_set(struct coapace_mechanism *, const char *, const char *);

int coapace_init(struct coapace_mechanism *mechanism, int name)
{
    if (mechanism == NULL) {
        return COAPACE_NULL_POINTER;
    }
    mechanism->opaque = NULL;
    for (size_t i = 0; i < sizeof ENTRIES / sizeof *ENTRIES; i++) {
        if (ENTRIES[i].number == name) {
            mechanism->opaque = &ENTRIES[i];
            return COAPACE_OK;
        }
    }
    return COAPACE_UNKNOWN_MECHANISM;
}

size_t coapace_state_size(const struct coapace_mechanism *mechanism)
{
    const struct entry *entry = mechanism != NULL ? mechanism->opaque : NULL;
    return entry != NULL ? entry->kind->state_size : 0;
}

int coapace_state_init(const struct coapace_mechanism *mechanism, void *state, size_t size)
{
    size_t needed = coapace_state_size(mechanism);
    volatile uint8_t *byte = state; /* volatile: or a memset would be linked for this alone */
    if (mechanism == NULL || state == NULL) {
        return COAPACE_NULL_POINTER;
    }
    if (needed == 0 || size < needed) {
        return needed == 0 ? COAPACE_BAD_MECHANISM : COAPACE_TOO_SMALL;
    }
    while (needed > 0) {
        byte[--needed] = 0;
    }
    byte[0] = ((const struct entry *)mechanism->opaque)->kind->tag;
    return COAPACE_OK;
}

/* Checks the arguments of a call, and writes the mechanism. `other` must not be null. A call without an
 * exchange, or with a new one, has the state in its place. */
static int check(const struct entry **entry, const struct coapace_mechanism *mechanism, const void *other,
                 const void *state, const void *exchange)
{
    if (mechanism == NULL || other == NULL || state == NULL || exchange == NULL) {
        return COAPACE_NULL_POINTER;
    }
    *entry = mechanism->opaque;
    if (*entry == NULL) {
        return COAPACE_BAD_MECHANISM;
    }
    if (*(const uint8_t *)state != (*entry)->kind->tag) {
        return COAPACE_BAD_STATE;
    }
    return *(const uint8_t *)exchange == (*entry)->kind->tag ? COAPACE_OK : COAPACE_BAD_EXCHANGE;
}

/* A transmission departs. */
static int arm(const struct coapace_mechanism *mechanism, struct call *call, bool is_copy, uint64_t *timeout)
{
    const struct entry *entry = NULL;
    int status = COAPACE_NULL_POINTER;
    if (call->exchange != NULL && timeout != NULL) {
        const void *tagged = is_copy ? (const void *)call->exchange : call->state;
        status = check(&entry, mechanism, call->cue, call->state, tagged);
    }
    if (status == COAPACE_OK) {
        unsigned retransmits = is_copy ? call->exchange->retransmits + 1u : 0;
        call->exchange->tag = entry->kind->tag;
        call->exchange->retransmits = (uint8_t)least(retransmits, UINT8_MAX);
        *timeout = us_of(entry->kind->arm(call));
    } else if (timeout != NULL) {
        *timeout = 3000000; /* a caller who ignores the status still waits */
    }
    return status;
}

int coapace_on_start(const struct coapace_mechanism *mechanism, void *state,
                     struct coapace_exchange *exchange, const struct coapace_cue *cue, uint64_t *timeout_us)
{
    struct call call = {state, (struct exchange *)exchange, cue, NULL};
    if (exchange != NULL) {
        call.exchange->tag = 0; /* an exchange that could not be started is none */
    }
    return arm(mechanism, &call, false, timeout_us);
}

int coapace_on_retransmit(const struct coapace_mechanism *mechanism, void *state,
                          struct coapace_exchange *exchange, const struct coapace_cue *cue,
                          uint64_t *timeout_us)
{
    struct call call = {state, (struct exchange *)exchange, cue, NULL};
    return arm(mechanism, &call, true, timeout_us);
}

int coapace_on_end(const struct coapace_mechanism *mechanism, void *state, struct coapace_exchange *exchange,
                   const struct coapace_outcome *outcome, const struct coapace_cue *cue)
{
    struct call call = {state, (struct exchange *)exchange, cue, NULL};
    const struct entry *entry = NULL;
    int status = cue != NULL ? check(&entry, mechanism, outcome, state, exchange) : COAPACE_NULL_POINTER;
    if (status != COAPACE_OK) {
        return status;
    }
    if (outcome->end < COAPACE_ACKED || outcome->end > COAPACE_GIVEN_UP) {
        return COAPACE_BAD_OUTCOME;
    }
    call.exchange->tag = 0;
    call.sample = outcome->end == COAPACE_ACKED ? &outcome->sample : NULL;
    if (call.sample != NULL || outcome->end == COAPACE_GIVEN_UP) {
        entry->kind->end(&call);
    }
    return COAPACE_OK;
}

int coapace_max_span(const struct coapace_mechanism *mechanism, uint8_t retransmits, uint64_t *span_us)
{
    const struct entry *entry = mechanism != NULL ? mechanism->opaque : NULL;
    if (mechanism == NULL || span_us == NULL) {
        return COAPACE_NULL_POINTER;
    }
    if (entry == NULL) {
        return COAPACE_BAD_MECHANISM;
    }
    *span_us = entry->kind->longest_s != 0 ? UINT64_C(1000000) * entry->kind->longest_s * retransmits
                                           : coapace_rfc7252_sum(3000000, retransmits);
    return COAPACE_OK;
}

int coapace_gauges(const struct coapace_mechanism *mechanism, const void *state,
                   struct coapace_gauges *gauges)
{
    const struct entry *entry = NULL;
    const struct state *known = state;
    uint64_t srtt = 0, rttvar = 0;
    int status = check(&entry, mechanism, gauges, state, state);
    if (status != COAPACE_OK) {
        return status;
    }
    if (entry->kind->state_size > 1) {
        srtt = load(&known->estimator.srtt);
        rttvar = load(&known->estimator.rttvar);
    }
#if COAPACE_WITH_COCOA
    if (entry->kind == &COCOA && srtt == 0) {
        srtt = load(&known->of.cocoa.weak.srtt);
        rttvar = load(&known->of.cocoa.weak.rttvar);
    }
#endif
    gauges->rto_us = us_of(entry->kind->rto(state));
    gauges->srtt_us = us_of(srtt);
    gauges->rttvar_us = us_of(rttvar);
    gauges->has_srtt = gauges->has_rttvar = srtt != 0;
    gauges->rate_per_ks = gauges->has_rate = 0;
#if COAPACE_WITH_TIDE
    if (entry->kind == &TIDE) {
        tide_gauges(state, gauges);
    }
#endif
    return COAPACE_OK;
}

int coapace_limits(const struct coapace_mechanism *mechanism, const void *state,
                   struct coapace_limits *limits)
{
    struct coapace_gauges gauges;
    int status = limits != NULL ? coapace_gauges(mechanism, state, &gauges) : COAPACE_NULL_POINTER;
    if (status != COAPACE_OK) {
        return status;
    }
    /* An RTO, and 3 s at least before the first sample (RFC 7641 section 4.5.1). */
    limits->non_gap_us = most(gauges.rto_us, gauges.has_srtt != 0 ? 0 : 3000000);
    limits->marking = ((const struct entry *)mechanism->opaque)->marking;
    limits->next_confirmable_us = limits->overtaken_us = limits->nstart = limits->has_nstart = 0;
#if COAPACE_WITH_TIDE
    if (((const struct entry *)mechanism->opaque)->kind == &TIDE) {
        tide_limits(state, limits);
    }
#endif
    return COAPACE_OK;
}
