/* trial: judges an adapter on a simulated path, beside its stack as it ships. For tests of adapters: include it once in a program.
 * The test brings a copy of the stack's timer. Licence: MIT OR Apache-2.0. */
#ifndef COAPACE_TRIAL_H
#define COAPACE_TRIAL_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define EXPECT(condition) \
    do { \
        if (!(condition)) { \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
            exit(EXIT_FAILURE); \
        } \
    } while (0)

#define TRIAL_NEVER UINT64_MAX

/* The path and the clock. A test of a stack reads now_ms and sets it to the next event. */
static struct {
    uint64_t now_ms;
    uint64_t arrival_ms; /* when the next answer arrives */
    uint64_t away_until_ms; /* the peer hears nothing before this moment */
    uint64_t departed_ms[64]; /* of the transmissions of this request */
    uint32_t rtt_ms, loss_percent, seed;
    unsigned sent, sent_now; /* datagrams in all, and for this request */
} trial;

static uint32_t trial_draw(void)
{
    trial.seed = trial.seed * 1664525 + 1013904223;
    return trial.seed ^ trial.seed >> 15;
}

/* A datagram departs now. Its answer arrives, or one of the two is lost. */
static void trial_datagram(void)
{
    bool is_lost = trial_draw() % 100 < trial.loss_percent;
    is_lost = trial_draw() % 100 < trial.loss_percent || is_lost;
    if (trial.sent_now < 64) {
        trial.departed_ms[trial.sent_now] = trial.now_ms;
    }
    trial.sent++;
    trial.sent_now++;
    if (!is_lost && trial.now_ms + trial.rtt_ms / 2 >= trial.away_until_ms && trial.now_ms + trial.rtt_ms < trial.arrival_ms) {
        trial.arrival_ms = trial.now_ms + trial.rtt_ms;
    }
}

/* Does one request to a destination to its end, with the adapter or without. Returns whether it was answered. */
typedef bool (*trial_request)(unsigned peer, bool is_adapted);

static bool trial_ask(trial_request request, unsigned peer, bool is_adapted)
{
    bool is_answered;
    trial.arrival_ms = TRIAL_NEVER;
    trial.sent_now = 0;
    is_answered = request(peer, is_adapted);
    trial.now_ms += 1000;
    return is_answered;
}

/* Returns how long `count` requests take together, in ms, without the pauses between them. */
static uint64_t trial_span(trial_request request, unsigned count, bool is_adapted, unsigned *failed)
{
    uint64_t begun_ms = trial.now_ms;
    *failed = 0;
    for (unsigned i = 0; i < count; i++) {
        *failed += trial_ask(request, 1, is_adapted) ? 0 : 1;
    }
    return trial.now_ms - begun_ms - 1000 * count;
}

static void trial_path(uint32_t rtt_ms, uint32_t loss_percent)
{
    trial.rtt_ms = rtt_ms;
    trial.loss_percent = loss_percent;
    trial.seed = 1;
}

/* Judges an adapter. patience_ms: the shortest time after which the stack gives up. most_percent: with loss, requests may take so much
 * of the time that they take with the stack as it ships. transmissions: as many as RFC 7252 allows for a request, if the stack's
 * numbers can keep to it. */
static void trial_judge(const char *stack, trial_request request, uint64_t patience_ms, unsigned most_percent, unsigned transmissions)
{
    uint64_t stock_ms, adapted_ms, begun_ms;
    unsigned stock_failed, adapted_failed, stock_sent, adapted_sent, away = 0;

    /* 200 requests at 20 % loss each way and 80 ms. */
    trial_path(80, 20);
    stock_ms = trial_span(request, 200, false, &stock_failed);
    trial_path(80, 20);
    adapted_ms = trial_span(request, 200, true, &adapted_failed);
    printf("%s: 200 requests at 20 %% loss take %" PRIu64 " s as shipped, and %" PRIu64 " s adapted; %u and %u fail\n", stack,
           stock_ms / 1000, adapted_ms / 1000, stock_failed, adapted_failed);
    EXPECT(adapted_ms * 100 <= stock_ms * most_percent);
    EXPECT(adapted_failed <= stock_failed);

    /* A path that is slower than ACK_TIMEOUT: timeouts grow, and spurious retransmissions end. */
    trial_path(5000, 0);
    trial.sent = 0;
    (void)trial_span(request, 50, false, &stock_failed);
    stock_sent = trial.sent;
    trial.sent = 0;
    (void)trial_span(request, 50, true, &adapted_failed);
    adapted_sent = trial.sent;
    printf("%s: 50 requests over 5 s take %u datagrams as shipped, and %u adapted\n", stack, stock_sent, adapted_sent);
    EXPECT(stock_failed == 0 && adapted_failed == 0);
    EXPECT(adapted_sent * 10 <= stock_sent * 7);

    /* A peer that is dead after a fast path was learnt: each of three requests waits as long as with the stack, and the later ones
     * send no more than RFC 7252. */
    trial_path(80, 0);
    (void)trial_span(request, 30, true, &adapted_failed);
    EXPECT(adapted_failed == 0);
    trial.away_until_ms = TRIAL_NEVER;
    for (unsigned i = 0; i < 3; i++) {
        begun_ms = trial.now_ms;
        EXPECT(!trial_ask(request, 1, true));
        EXPECT(trial.now_ms - 1000 - begun_ms >= patience_ms);
        EXPECT(i == 0 || transmissions == 0 || trial.sent_now <= transmissions);
        EXPECT(i == 0 || trial.departed_ms[1] - trial.departed_ms[0] >= 2000);
    }
    trial.away_until_ms = 0;

    /* A peer that is away for 30 s loses nothing. */
    for (unsigned i = 0; i < 20; i++) {
        (void)trial_span(request, 10, true, &adapted_failed);
        EXPECT(adapted_failed == 0);
        trial.away_until_ms = trial.now_ms + 30000;
        away += trial_ask(request, 1, true) ? 0 : 1;
    }
    EXPECT(away == 0);
    trial.away_until_ms = 0;

    /* More destinations than the table has places: the last one is still known, and adapted. */
    for (unsigned peer = 2; peer < 1000; peer++) {
        EXPECT(trial_ask(request, peer, true));
    }
    for (unsigned i = 0; i < 10; i++) {
        EXPECT(trial_ask(request, 999, true));
    }
    printf("%s: waits for a dead peer as long as shipped, and loses nothing to one that is away for 30 s\n", stack);
}

#endif
