/* fuzz [STEPS [SEED]]: makes random steps with coapace.c and with the library of crates/ffi, and compares all that they return.
 *
 * The library of crates/ffi has the names of its header. The object of coapace.c was given the prefix c_. Half of the episodes have
 * random facts. In the other half a path with a queue and with losses answers, so that estimates are those of real life, too. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coapace.h" /* of crates/ffi */

int c_coapace_init(struct coapace_mechanism *, int);
size_t c_coapace_state_size(const struct coapace_mechanism *);
int c_coapace_state_init(const struct coapace_mechanism *, void *, size_t);
int c_coapace_on_start(const struct coapace_mechanism *, void *, struct coapace_exchange *, const struct coapace_cue *, uint64_t *);
int c_coapace_on_retransmit(const struct coapace_mechanism *, void *, struct coapace_exchange *, const struct coapace_cue *,
                            uint64_t *);
int c_coapace_on_end(const struct coapace_mechanism *, void *, struct coapace_exchange *, const struct coapace_outcome *,
                     const struct coapace_cue *);
int c_coapace_max_span(const struct coapace_mechanism *, uint8_t, uint64_t *);
int c_coapace_limits(const struct coapace_mechanism *, const void *, struct coapace_limits *);
int c_coapace_gauges(const struct coapace_mechanism *, const void *, struct coapace_gauges *);

enum { EXCHANGES = 12, COPIES = 300 };

static const int NAMES[] = {COAPACE_DEFAULT, COAPACE_LINUX_RTO, COAPACE_COCOA, COAPACE_FASOR, COAPACE_FASOR_TOKEN,
                            COAPACE_FASOR_OPTION, COAPACE_EBB, COAPACE_EBB_PLAIN, COAPACE_TIDE};
enum { MECHANISMS = sizeof NAMES / sizeof *NAMES };

/* What a library knows of a destination: one of crates/ffi and one of coapace.c. */
struct side {
    struct coapace_mechanism mechanism;
    unsigned char state[COAPACE_STATE_SIZE_MAX];
    struct coapace_exchange exchange[EXCHANGES];
};

static struct side rust, c;
static uint64_t departed_us[EXCHANGES][COPIES];
static unsigned copies[EXCHANGES];
static bool is_open[EXCHANGES];
static uint16_t outstanding;
static int name;
static uint64_t random_state, step;

static uint64_t any(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state * UINT64_C(0x2545f4914f6cdd1d);
}

/* Returns a random number below a bound. */
static uint64_t below(uint64_t bound)
{
    return (any() >> 11) % bound;
}

/* Returns a random number of as many bits as another one says. */
static uint64_t any_size(unsigned bits)
{
    return any() >> (63 - below(bits));
}

static void differs(const char *what, uint64_t expected, uint64_t found)
{
    printf("step %" PRIu64 ", mechanism %d: %s is %" PRIu64 ", and %" PRIu64 " in coapace.c\n", step, name, what, expected, found);
    exit(EXIT_FAILURE);
}

static void compare(const char *what, uint64_t expected, uint64_t found)
{
    if (expected != found) {
        differs(what, expected, found);
    }
}

static void compare_state(void)
{
    struct coapace_gauges expected, found;
    struct coapace_limits wanted, limits;
    compare("the status of gauges", (uint64_t)coapace_gauges(&rust.mechanism, rust.state, &expected),
            (uint64_t)c_coapace_gauges(&c.mechanism, c.state, &found));
    compare("rto_us", expected.rto_us, found.rto_us);
    compare("srtt_us", expected.srtt_us, found.srtt_us);
    compare("rttvar_us", expected.rttvar_us, found.rttvar_us);
    compare("rate_per_ks", expected.rate_per_ks, found.rate_per_ks);
    compare("has_srtt", expected.has_srtt, found.has_srtt);
    compare("has_rttvar", expected.has_rttvar, found.has_rttvar);
    compare("has_rate", expected.has_rate, found.has_rate);
    compare("the status of limits", (uint64_t)coapace_limits(&rust.mechanism, rust.state, &wanted),
            (uint64_t)c_coapace_limits(&c.mechanism, c.state, &limits));
    compare("next_confirmable_us", wanted.next_confirmable_us, limits.next_confirmable_us);
    compare("non_gap_us", wanted.non_gap_us, limits.non_gap_us);
    compare("overtaken_us", wanted.overtaken_us, limits.overtaken_us);
    compare("nstart", wanted.nstart, limits.nstart);
    compare("has_nstart", wanted.has_nstart, limits.has_nstart);
    compare("marking", wanted.marking, limits.marking);
}

/* Makes a call that is a mistake, in one of many ways. */
static void mistake(const struct coapace_cue *cue)
{
    struct coapace_exchange none[2];
    struct coapace_outcome outcome = {{1000, 1000, 0, 0, 0, 0}, COAPACE_RESET};
    struct coapace_mechanism unknown[2];
    unsigned char bytes[2][COAPACE_STATE_SIZE_MAX];
    uint64_t expected = 0, found = 0;
    int other = (int)below(30) - 2;
    bool has_it = false;
    memset(none, 0, sizeof none);
    memset(unknown, 0, sizeof unknown);
    memset(bytes, 0, sizeof bytes);
    for (unsigned i = 0; i < MECHANISMS; i++) {
        has_it = has_it || NAMES[i] == other;
    }
    switch (below(11)) {
    case 0:
        compare("a status", (uint64_t)coapace_on_retransmit(&rust.mechanism, rust.state, &none[0], cue, &expected),
                (uint64_t)c_coapace_on_retransmit(&c.mechanism, c.state, &none[1], cue, &found));
        break;
    case 1:
        compare("a status", (uint64_t)coapace_on_end(&rust.mechanism, rust.state, &none[0], &outcome, cue),
                (uint64_t)c_coapace_on_end(&c.mechanism, c.state, &none[1], &outcome, cue));
        break;
    case 2:
        compare("a status", (uint64_t)coapace_on_start(&unknown[0], rust.state, &none[0], cue, &expected),
                (uint64_t)c_coapace_on_start(&unknown[1], c.state, &none[1], cue, &found));
        break;
    case 3:
        compare("a status", (uint64_t)coapace_on_start(&rust.mechanism, bytes[0], &none[0], cue, &expected),
                (uint64_t)c_coapace_on_start(&c.mechanism, bytes[1], &none[1], cue, &found));
        break;
    case 4:
        compare("a status", (uint64_t)coapace_on_start(&rust.mechanism, rust.state, &none[0], NULL, &expected),
                (uint64_t)c_coapace_on_start(&c.mechanism, c.state, &none[1], NULL, &found));
        break;
    case 5:
        compare("a status", (uint64_t)coapace_state_init(&rust.mechanism, bytes[0], coapace_state_size(&rust.mechanism) - 1),
                (uint64_t)c_coapace_state_init(&c.mechanism, bytes[1], c_coapace_state_size(&c.mechanism) - 1));
        break;
    case 6:
        compare("a status", (uint64_t)coapace_state_init(&unknown[0], bytes[0], 64),
                (uint64_t)c_coapace_state_init(&unknown[1], bytes[1], 64));
        break;
    case 7:
        compare("a status", (uint64_t)coapace_max_span(&unknown[0], 4, &expected),
                (uint64_t)c_coapace_max_span(&unknown[1], 4, &found));
        break;
    case 8:
        compare("a status", has_it ? COAPACE_OK : COAPACE_UNKNOWN_MECHANISM, (uint64_t)c_coapace_init(&unknown[1], other));
        break;
    case 9:
        outcome.end = (uint8_t)(below(2) * 5);
        if (is_open[0]) {
            compare("a status", (uint64_t)coapace_on_end(&rust.mechanism, rust.state, &rust.exchange[0], &outcome, cue),
                    (uint64_t)c_coapace_on_end(&c.mechanism, c.state, &c.exchange[0], &outcome, cue));
        }
        break;
    default:
        compare("a status", (uint64_t)coapace_max_span(&rust.mechanism, (uint8_t)cue->draw, &expected),
                (uint64_t)c_coapace_max_span(&c.mechanism, (uint8_t)cue->draw, &found));
    }
    compare("what was written", expected, found);
}

static void start(unsigned place, struct coapace_cue *cue)
{
    uint64_t expected, found;
    cue->outstanding = ++outstanding;
    is_open[place] = true;
    copies[place] = 0;
    departed_us[place][0] = cue->now_us;
    compare("the status of on_start",
            (uint64_t)coapace_on_start(&rust.mechanism, rust.state, &rust.exchange[place], cue, &expected),
            (uint64_t)c_coapace_on_start(&c.mechanism, c.state, &c.exchange[place], cue, &found));
    compare("the first timeout", expected, found);
}

static void retransmit(unsigned place, const struct coapace_cue *cue)
{
    uint64_t expected, found;
    departed_us[place][++copies[place]] = cue->now_us;
    compare("the status of on_retransmit",
            (uint64_t)coapace_on_retransmit(&rust.mechanism, rust.state, &rust.exchange[place], cue, &expected),
            (uint64_t)c_coapace_on_retransmit(&c.mechanism, c.state, &c.exchange[place], cue, &found));
    compare("a timeout", expected, found);
}

static void end(unsigned place, const struct coapace_outcome *outcome, const struct coapace_cue *cue)
{
    compare("the status of on_end",
            (uint64_t)coapace_on_end(&rust.mechanism, rust.state, &rust.exchange[place], outcome, cue),
            (uint64_t)c_coapace_on_end(&c.mechanism, c.state, &c.exchange[place], outcome, cue));
    is_open[place] = false;
    outstanding--;
}

/* Begins an episode: another mechanism and new states. */
static void begin(void)
{
    name = below(3) == 0 ? COAPACE_TIDE : NAMES[below(MECHANISMS)]; /* tide has the most branches */
    memset(&rust, 0, sizeof rust);
    memset(&c, 0, sizeof c);
    memset(is_open, 0, sizeof is_open);
    outstanding = 0;
    if (coapace_init(&rust.mechanism, name) != 0 || c_coapace_init(&c.mechanism, name) != 0 ||
        coapace_state_init(&rust.mechanism, rust.state, sizeof rust.state) != 0 ||
        c_coapace_state_init(&c.mechanism, c.state, sizeof c.state) != 0 ||
        c_coapace_state_size(&c.mechanism) > coapace_state_size(&rust.mechanism)) {
        differs("the beginning", 0, 1);
    }
}

int main(int argc, char *argv[])
{
    uint64_t steps = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000000, next = 0;
    uint64_t now_us = 0, path_us = 0, rate_us = 0, queue_us = 0;
    unsigned lost = 0;
    bool is_wild = false;
    random_state = (argc > 2 ? strtoull(argv[2], NULL, 10) : 1) * UINT64_C(0x9e3779b97f4a7c15) | 1;
    for (step = 0; step < steps; step++) {
        struct coapace_cue cue = {0, (uint32_t)any(), 0};
        struct coapace_outcome outcome;
        unsigned place = (unsigned)below(EXCHANGES), kind = (unsigned)below(64);
        memset(&outcome, 0, sizeof outcome);
        if (step == next) {
            begin();
            next = step + 1 + any_size(13);
            is_wild = below(2) != 0;
            /* Some episodes begin shortly before a counter of 32 bits wraps, in milliseconds or microseconds. */
            now_us = below(4) != 0 ? any_size(45) : (UINT64_C(1) << 32) * (below(2) != 0 ? 1000 : 1) - any_size(28);
            path_us = any_size(27) + 1;
            rate_us = any_size(20);
            lost = (unsigned)below(40);
            queue_us = 0;
        }
        if (below(1500) == 0) { /* another path: what was a round-trip time looks like a queue, or the other way round */
            path_us = any_size(27) + 1;
        }
        now_us += is_wild && below(256) == 0 ? any_size(63) : any_size(is_wild ? 30 : 12) + path_us / (1 + below(30));
        now_us += below(128) == 0 ? any_size(25) : 0; /* a pause, so that estimates and epochs age */
        now_us -= is_wild && below(256) == 0 ? any_size(30) : 0;
        cue.now_us = now_us;
        cue.outstanding = outstanding;
        cue.draw = below(16) == 0 ? (uint32_t)(below(3) - 1) : cue.draw;
        if (below(64) == 0) {
            mistake(&cue);
        }
        if (!is_open[place]) {
            start(place, &cue);
        } else if (kind < (is_wild ? 20 : lost) && copies[place] + 1 < COPIES) {
            retransmit(place, &cue);
        } else if (kind == 63 || kind == 62) {
            outcome.end = (uint8_t)(COAPACE_RESET + below(3));
            end(place, &outcome, &cue);
        } else {
            struct coapace_sample *sample = &outcome.sample;
            outcome.end = COAPACE_ACKED;
            sample->retransmits = (uint8_t)(copies[place] < 255 ? copies[place] : 255);
            sample->has_answered = below(2) != 0;
            sample->answered = (uint8_t)(below(8) == 0 ? 0 : below(copies[place] + 1u));
            if (is_wild) {
                sample->since_first_us = below(8) == 0 ? any() : any_size(32);
                sample->since_last_us = below(4) == 0 ? any_size(20) : below(sample->since_first_us | 1);
                sample->since_answered_us = any_size(32);
            } else {
                /* A queue that grows and empties, before a link with a little jitter. */
                queue_us = below(8) != 0 ? queue_us + below(1 + rate_us) : queue_us / (1 + below(3));
                queue_us = queue_us > 40 * rate_us ? 0 : queue_us;
                sample->since_last_us = path_us + queue_us + below(1 + path_us / 64);
                sample->since_answered_us = sample->since_last_us;
                sample->since_first_us = sample->since_last_us + (departed_us[place][copies[place]] - departed_us[place][0]);
                sample->since_last_us = below(16) == 0 ? path_us / 2 : sample->since_last_us;
            }
            end(place, &outcome, &cue);
        }
        compare_state();
    }
    printf("%" PRIu64 " random steps: no difference\n", steps);
    return EXIT_SUCCESS;
}
