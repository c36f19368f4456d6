/* Spans of time, and the estimator of round-trip times: a part of coapace.c. Licence: MIT OR Apache-2.0. */
#ifndef COAPACE_SPANS_H
#define COAPACE_SPANS_H

#include "coapace.h"

/* A span is a time in units of 1/4096 us, LONGEST (268 s) at most. Averages in microseconds would stall. */
#define LONGEST ((UINT64_C(1) << 40) - 1)
#define MS(ms) (UINT64_C(4096000) * (ms))
#define SECONDS(s) MS(UINT64_C(1000) * (s))

/* A span in memory of the caller, which has no alignment and is therefore structs of bytes. */
struct kept { uint8_t byte[5]; };

/* SRTT and RTTVAR. SRTT is zero before the first sample, and never after. */
struct estimator { struct kept srtt, rttvar; };

static inline uint64_t least(uint64_t one, uint64_t other) { return one < other ? one : other; }
static inline uint64_t most(uint64_t one, uint64_t other) { return one > other ? one : other; }
static inline uint64_t span_of(uint64_t us) { return us >> 28 == 0 ? us << 12 : LONGEST; }
static inline uint64_t us_of(uint64_t span) { return (span + 2048) >> 12; }

static inline uint64_t load(const struct kept *kept)
{
    const uint8_t *byte = kept->byte;
    uint32_t low = byte[0] | (uint32_t)byte[1] << 8 | (uint32_t)byte[2] << 16 | (uint32_t)byte[3] << 24;
    return (uint64_t)byte[4] << 32 | low;
}

static inline uint64_t keep(struct kept *kept, uint64_t span)
{
    uint32_t low = (uint32_t)span;
    for (int i = 0; i < 4; i++, low >>= 8) {
        kept->byte[i] = (uint8_t)low;
    }
    kept->byte[4] = (uint8_t)(span >> 32);
    return span;
}

/* Returns value / 2^shift, to the nearest integer, halves up. */
static inline uint64_t part(uint64_t value, unsigned shift)
{
    return (value + (UINT64_C(1) << shift >> 1)) >> shift;
}

/* Returns a step of a moving average, with a weight of 1/2^shift for the new value. */
static inline uint64_t blend(uint64_t old, uint64_t new, unsigned shift)
{
    return part((old << shift) - old + new, shift);
}

/* Returns U(0, value), to the nearest integer. */
static inline uint64_t drawn(uint64_t value, uint32_t draw)
{
    return (value >> 32) * draw + (((value & UINT32_MAX) * draw + (UINT32_C(1) << 31)) >> 32);
}

/* Takes in a sample (RFC 6298). RTTVAR is 1/2^first of the first one. Later ones weigh 1/2^gain in it. */
static inline void learn(struct estimator *estimator, uint64_t rtt, unsigned first, unsigned gain)
{
    uint64_t srtt = load(&estimator->srtt), rttvar = part(rtt, first);
    if (srtt != 0) {
        rttvar = blend(load(&estimator->rttvar), most(srtt, rtt) - least(srtt, rtt), gain);
        rtt = blend(srtt, rtt, 3);
    }
    keep(&estimator->rttvar, rttvar);
    keep(&estimator->srtt, rtt);
}

/* Returns SRTT + max(G, k * RTTVAR) within bounds. G, the granularity of clocks, is 1 ms. */
static inline uint64_t estimate(const struct estimator *estimator, unsigned k, uint64_t shortest,
                                uint64_t longest)
{
    uint64_t rto = load(&estimator->srtt) + most(k * load(&estimator->rttvar), MS(1));
    return least(most(rto, shortest), longest);
}

/* Returns a measured time as a span of 1 us at least. */
static inline uint64_t rtt_of(uint64_t us) { return span_of(most(us, 1)); }

/* Returns the round-trip time of a sample, or zero if there is none or it is ambiguous. */
static inline uint64_t clear_rtt(const struct coapace_sample *sample)
{
    if (sample == NULL || (sample->has_answered == 0 && sample->retransmits > 0)) {
        return 0;
    }
    return rtt_of(sample->has_answered != 0 ? sample->since_answered_us : sample->since_first_us);
}

#endif
