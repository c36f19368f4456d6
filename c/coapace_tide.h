/* tide, a part of coapace.c, which includes it if COAPACE_WITH_TIDE is 1. Licence: MIT OR Apache-2.0.
 * docs/tide.md specifies the mechanism. The arithmetic is that of crates/control/src/registry/tide. */

/* The state of a flow, unpacked. Times are in microseconds, windows in 1/256 of a datagram. */
struct flow {
    uint64_t next;              /* the earliest departure of the next exchange */
    uint32_t least, next_least; /* the least round-trip time of two epochs, and of this one */
    uint32_t standing[2], mark; /* the least of this half of a round trip and of the last; its start */
    uint32_t window, marked;    /* marked: as the round trip or an ebb began; in competition: the aim */
    uint32_t longest;           /* the longest recent delay in the queue */
    uint16_t epoch, calm;       /* its start in 2^16 us; the window with no queue, in 1/16 datagram */
    uint16_t loss[2];           /* shares of losses while the queue was short and long, in 2^-16 */
    uint8_t full, round, cut;   /* round trips since an empty queue; their count; that of a reduction */
    uint8_t silence, trend;     /* silent round trips since a sample, ANSWERED; flags, STEADY */
    struct estimator estimator; /* in memory of the caller it comes first */
};

/* Flags. Above them in `trend` are the round trips in one direction, in units of STEADY. */
enum { UP = 1, SLOW = 2, LONG = 4, HALF = 8, STEADY = 16, ANSWERED = 128 };
enum { CALM = 2, EBB_PHASE, FLOOD, COMPETITION };       /* phases, by `full` */
enum { ONE = 256, LEAST = 2 * ONE, MOST = 1024 * ONE }; /* windows */

/* Copies bytes. `volatile` keeps compilers from a call of memcpy, which would be linked for this alone. */
static inline void copy(void *to, const void *from, size_t size)
{
    volatile uint8_t *place = to;
    for (const uint8_t *byte = from; size > 0; size--) {
        *place++ = *byte++;
    }
}

static inline void flow_open(struct flow *flow, const struct state *state)
{
    static const struct flow NEW = {0, UINT32_MAX, UINT32_MAX, {UINT32_MAX, UINT32_MAX}, 0, 10 * ONE, 0, 0, 0,
                                    0, {0, 0}, 0, 0, 156, 0, UP | SLOW, {{{0}}, {{0}}}};
    copy(flow, state->of.tide, sizeof state->of.tide);
    if (flow->window == 0) {
        copy(flow, &NEW, sizeof NEW);
    }
    copy(&flow->estimator, &state->estimator, sizeof flow->estimator);
}

static inline void flow_close(const struct flow *flow, struct state *state)
{
    copy(state->of.tide, flow, sizeof state->of.tide);
    copy(&state->estimator, &flow->estimator, sizeof flow->estimator);
}

static inline uint32_t less(uint32_t one, uint32_t other) { return one > other ? one - other : 0; }
static inline uint32_t flow_us(uint64_t us) { return (uint32_t)least(most(us, 1), 1 << 28); }

static inline uint32_t flow_standing(const struct flow *flow)
{
    return (uint32_t)least(flow->standing[0], flow->standing[1]);
}

static inline uint32_t flow_queue(const struct flow *flow) { return less(flow_standing(flow), flow->least); }

static inline unsigned flow_phase(const struct flow *flow)
{
    return (unsigned)least(most(flow->full, CALM), COMPETITION);
}

static inline uint32_t flow_srtt(const struct flow *flow)
{
    return load(&flow->estimator.srtt) != 0 ? flow_us(us_of(load(&flow->estimator.srtt))) : 0;
}

static inline uint32_t flow_window(uint32_t window) { return (uint32_t)least(most(window, LEAST), MOST); }

static inline void flow_end_slow_start(struct flow *flow) { flow->trend &= UP | LONG | HALF; }

/* Returns value * numerator / divisor, at most `bound`. It takes one bit at a time, for little code. */
static inline uint32_t scaled(uint32_t value, uint32_t numerator, uint32_t divisor, uint32_t bound)
{
    uint64_t rest = 0, quotient = (uint64_t)value * numerator;
    for (int left = 64; left > 0; left--) {
        rest = rest << 1 | quotient >> 63;
        quotient <<= 1;
        if (rest >= divisor) {
            rest -= divisor;
            quotient++;
        }
    }
    return (uint32_t)least(quotient, bound);
}

/* Returns the marked window less its part of the longest queue. */
static inline uint32_t flow_without_queue(const struct flow *flow)
{
    uint32_t rtt = (uint32_t)least((uint64_t)flow->least + flow->longest, UINT32_MAX);
    return flow_window(scaled(flow->marked, flow->least, rtt, MOST) + ONE);
}

/* Returns the RTO without backoff. It is SRTT/4 above SRTT at least: a window that departs evenly leaves no
 * variation. In slow start it is twice SRTT at least, for the round-trip time may double. */
static inline uint64_t flow_usual_rto(const struct flow *flow)
{
    uint64_t srtt = load(&flow->estimator.srtt), margin = srtt >> ((flow->trend & SLOW) != 0 ? 0 : 2);
    srtt += most(4 * load(&flow->estimator.rttvar), margin);
    return srtt != 0 ? least(most(srtt, MS(50)), SECONDS(60)) : SECONDS(2);
}

static inline uint64_t flow_rto(const struct flow *flow)
{
    uint64_t rto = flow_usual_rto(flow);
    for (int left = flow->silence % ANSWERED; left > 1 && rto < SECONDS(60); left--) {
        rto = least(rto + rto / 2, SECONDS(60));
    }
    return rto;
}

static inline uint64_t tide_rto(const struct state *state)
{
    struct flow flow;
    flow_open(&flow, state);
    return flow_rto(&flow);
}

/* Takes in a loss: the exchange was overtaken, or its timeout has passed. */
static inline void flow_lose(struct flow *flow, const struct call *call)
{
    const struct exchange *exchange = call->exchange;
    uint32_t late = (uint32_t)call->cue->now_us - (uint32_t)load(&exchange->timeout); /* modulo 2^32 */
    bool is_silent = late >> 31 == 0 && exchange->round == flow->round; /* no round trip has ended since */
    unsigned is_long = (flow->trend & LONG) != 0 ? 1 : 0;
    uint8_t age = (uint8_t)(flow->round - exchange->round);
    flow->loss[is_long] = (uint16_t)(flow->loss[is_long] + ((UINT16_MAX - flow->loss[is_long]) >> 5));
    /* Losses are congestion if they come with a long queue, or if over five in eight are lost. A round trip
     * has one reduction. */
    bool is_congestion = (is_long != 0 && flow->loss[1] > 2 * flow->loss[0] + 1024) ||
                         most(flow->loss[0], flow->loss[1]) > 40960;
    if (is_congestion && age <= (uint8_t)(flow->round - flow->cut)) {
        unsigned leaves = flow_phase(flow) == COMPETITION ? 9 : 12; /* of 16 */
        flow->cut = ++flow->round;
        flow->full = leaves == 9 ? flow->full : 0;
        flow_end_slow_start(flow);
        flow->window = flow_window((flow->window * leaves + 8) / 16);
        flow->marked = flow->window;
    }
    if (is_silent) {
        bool is_first = flow->silence == 0 || flow->silence >= ANSWERED;
        flow->round++;
        flow->silence = (uint8_t)least(1u + (flow->silence % ANSWERED), 32);
        if (!is_first) {
            flow->window = ONE;
            flow->full = 0;
            flow->trend |= SLOW;
        }
    }
}

static inline uint64_t tide_arm(const struct call *call)
{
    struct flow flow;
    uint64_t now_us = call->cue->now_us, rto, gap, since;
    flow_open(&flow, call->state);
    if (call->exchange->retransmits > 0) {
        flow_lose(&flow, call);
    }
    /* Two windows depart in a round-trip time. After a late timer up to an eighth of one departs at once. */
    gap = (uint32_t)(least(flow_srtt(&flow), UINT32_MAX >> 7) << 7) / flow.window;
    since = most(flow.next, now_us - least(now_us, (flow_srtt(&flow) >> 4) + 1000));
    flow.next = since + least(gap, UINT64_MAX - since);
    flow_close(&flow, call->state);
    rto = flow_rto(&flow);
    rto = least(rto + drawn(part(rto, 2), call->cue->draw), SECONDS(60));
    keep(&call->exchange->timeout, (uint32_t)now_us + flow_us(us_of(rto)));
    call->exchange->round = flow.round;
    return rto;
}

/* Ends a round trip. */
static inline void flow_turn(struct flow *flow)
{
    unsigned before = flow_phase(flow);
    flow->round++;
    if ((uint8_t)(flow->round - flow->cut) > 100) {
        flow->cut = (uint8_t)(flow->round - 100); /* rounds are compared modulo 256 */
    }
    if ((flow->trend & SLOW) != 0) {
        return;
    }
    if (flow->full == 0) {
        uint32_t calm = (uint32_t)least(flow->window, flow->marked);
        calm = scaled(calm, flow->least, flow_standing(flow), MOST) / 16;
        flow->calm = (uint16_t)most(calm, flow->calm - (flow->calm >> 4));
    }
    flow->longest -= flow->longest / 16;
    flow->full = flow->full < 22 ? flow->full + 1 : EBB_PHASE; /* 18 round trips of competition */
    switch (flow_phase(flow)) {
    case CALM:
        if ((flow->window > flow->marked) != ((flow->trend & UP) != 0)) {
            flow->trend = (uint8_t)((flow->trend ^ UP) & (STEADY - 1));
        } else if (flow->trend < 15 * STEADY) {
            flow->trend += STEADY;
        }
        flow->marked = flow->window;
        break;
    case EBB_PHASE:
        flow->longest = flow_queue(flow);
        flow->marked = flow->window;
        flow->window = flow_window((flow_without_queue(flow) * 3 + 2) / 4);
        break;
    case FLOOD:
        flow->window = flow_without_queue(flow);
        flow->trend &= STEADY - 1;
        break;
    default:
        if (before == FLOOD) { /* with the queue of others, the rate before needs a larger window */
            uint32_t window = scaled((uint32_t)flow->calm * 16, flow_standing(flow), flow->least, MOST);
            flow->marked = (uint32_t)most(flow->marked, window);
            flow->calm = 0;
        }
    }
}

/* Moves the window by an answer. It does not rise while less than half of it is used. */
static inline void flow_steer(struct flow *flow, uint16_t outstanding)
{
    unsigned phase = flow_phase(flow);
    uint64_t wanted = UINT64_C(2) * ONE * flow_standing(flow); /* two datagrams in the queue */
    bool rises = phase == COMPETITION || (uint64_t)flow->window * flow_queue(flow) < wanted;
    bool is_used = UINT32_C(2) * ONE * outstanding >= flow->window;
    uint32_t step;
    if ((flow->trend & SLOW) != 0) {
        if (rises) {
            flow->window = (uint32_t)least(flow->window + (is_used ? ONE : 0), MOST);
            return;
        }
        flow_end_slow_start(flow);
        flow->window = flow_window(scaled(flow->window, flow->least, flow_standing(flow), MOST));
        flow->marked = flow->window;
    }
    if (phase == EBB_PHASE) {
        return;
    }
    /* In a round trip the window moves by the target; after three in one direction by twice that... */
    step = (uint32_t)LEAST << least(less(flow->trend / STEADY, 2), 7);
    if (phase == COMPETITION) {
        step = flow->window < flow->marked ? MOST : ONE; /* it takes back the rate that it had before */
    } else if (phase == CALM && (uint8_t)(flow->round - flow->cut) < 32) {
        step = ONE; /* wary after congestion */
    }
    step = (uint32_t)least(most(step * ONE / flow->window, 1), ONE);
    if (!rises) {
        /* At least a tenth of the window in a round trip. */
        flow->window = flow_window(flow->window - (uint32_t)most(step, 26));
    } else if (is_used) {
        flow->window = flow_window(flow->window + step);
    }
}

/* Notes whether the queue is empty: a tenth of the longest recent one at most, or half of it after an ebb. */
static inline void flow_look(struct flow *flow)
{
    unsigned phase = flow_phase(flow);
    bool is_ebb = phase == EBB_PHASE || phase == FLOOD;
    if (flow_queue(flow) > (is_ebb ? flow->longest / 2 + flow->longest % 2 : flow->longest / 10)) {
        return;
    }
    if (phase == EBB_PHASE) {
        flow->window = flow_without_queue(flow);
        flow->marked = flow->window;
    }
    flow->full = 0;
}

/* Takes in a sample. */
static inline void flow_learn(struct flow *flow, uint64_t span, const struct coapace_cue *cue)
{
    uint32_t now = (uint32_t)cue->now_us, rtt = flow_us(us_of(span)), queue;
    uint16_t epoch = (uint16_t)(cue->now_us >> 16);
    bool is_first = flow_srtt(flow) == 0;
    uint64_t limit;
    learn(&flow->estimator, span, 1, 2);
    flow->silence = 0;
    if (is_first) {
        flow->mark = now;
        flow->marked = flow->window;
    }
    flow->least = (uint32_t)least(flow->least, rtt);
    flow->next_least = (uint32_t)least(flow->next_least, rtt);
    /* An epoch lasts 30 s or 30 round trips, four times as long while the queue does not empty. */
    limit = most(UINT64_C(30) * flow_srtt(flow), 30000000) * (flow_phase(flow) == CALM ? 1 : 4);
    if (is_first || (uint64_t)(uint16_t)(epoch - flow->epoch) << 16 > limit) {
        flow->least = flow->next_least;
        flow->next_least = rtt;
        flow->epoch = epoch;
    }
    /* Two halves make a round trip, so the standing times cover the last half to whole one. */
    if (now - flow->mark > flow_srtt(flow) / 2) {
        flow->mark = now;
        flow->standing[1] = flow->standing[0];
        flow->standing[0] = rtt;
        flow->trend ^= HALF;
        if ((flow->trend & HALF) == 0) {
            flow_turn(flow);
        }
    } else {
        flow->standing[0] = (uint32_t)least(flow->standing[0], rtt);
    }
    queue = less(rtt, flow->least);
    flow->longest = (uint32_t)most(flow->longest, queue);
    flow->trend &= (uint8_t)~LONG;
    if (queue > flow->longest / 2 && queue > flow->least / 32) {
        flow->trend |= LONG;
    }
    flow_look(flow);
    flow_steer(flow, cue->outstanding);
}

static inline void tide_end(const struct call *call)
{
    const struct coapace_sample *sample = call->sample;
    uint64_t rtt = clear_rtt(sample);
    struct flow flow;
    flow_open(&flow, call->state);
    if (sample == NULL) {
        flow_lose(&flow, call);
    } else {
        uint32_t last = flow_us(sample->since_last_us);
        unsigned is_long = (flow.trend & LONG) != 0 ? 1 : 0;
        flow.silence |= ANSWERED;
        /* The share with a short queue fades while the queue is long: losses may have become congestion. */
        flow.loss[0] = (uint16_t)(flow.loss[0] - (flow.loss[0] >> (is_long ? 8 : 5)));
        flow.loss[1] = (uint16_t)(flow.loss[1] - (is_long ? flow.loss[1] >> 5 : 0));
        if (rtt == 0 && flow_srtt(&flow) != 0 && sample->retransmits == 1 && last < flow.least) {
            /* The copy cannot have been answered so soon, so the first transmission was. */
            rtt = rtt_of(sample->since_first_us);
        }
        if (rtt != 0) {
            flow_learn(&flow, rtt, call->cue);
        } else if (span_of(sample->since_last_us) <= flow_usual_rto(&flow) && last >= flow.least &&
                   flow.silence % ANSWERED > 1)
{
            /* An answer that comes as soon after the copy as answers usually do ends the backoff. */
            flow.silence = ANSWERED | 1;
        }
    }
    flow_close(&flow, call->state);
}

/* Adds the window, the pacing and the time by which an exchange is overtaken. */
static inline void tide_limits(const struct state *state, struct coapace_limits *limits)
{
    uint64_t srtt = load(&state->estimator.srtt);
    struct flow flow;
    flow_open(&flow, state);
    limits->has_nstart = 1;
    limits->nstart = (uint16_t)(flow.window / ONE);
    limits->next_confirmable_us = flow.next;
    limits->overtaken_us = (uint32_t)us_of(most(part(srtt != 0 ? srtt : SECONDS(2), 3), MS(1)));
}

/* Adds the rate: a window in each round-trip time. */
static inline void tide_gauges(const struct state *state, struct coapace_gauges *gauges)
{
    struct flow flow;
    flow_open(&flow, state);
    gauges->has_rate = gauges->has_srtt;
    if (gauges->has_rate != 0) {
        gauges->rate_per_ks = scaled(flow.window, 1000000000 / ONE, flow_srtt(&flow), UINT32_MAX);
    }
}

static const struct kind TIDE = {tide_arm, tide_end, tide_rto, 6, COAPACE_STATE_SIZE_TIDE, 60};
