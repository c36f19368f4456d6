/* client: an example of the library in firmware. A device sends requests to three peers over a network that loses every fourth
 * message. The network and the clock are made up. The rest is the work of a CoAP stack for confirmable messages. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "coapace.h"

#define SECOND UINT64_C(1000000)

enum { PEERS = 3, ANSWERS = 12, MAX_RETRANSMIT = 4 };

/* The one confirmable message that may be under way to a peer (NSTART is 1, RFC 7252 section 4.7). */
struct message {
    struct coapace_exchange exchange;
    uint64_t first_us, last_us; /* the first and the last departure */
    uint64_t deadline_us;       /* the time of the next retransmission */
    uint64_t answer_us;         /* the arrival of the answer; 0 if the network lost the message */
    uint8_t retransmits;
};

/* The memory of congestion control: the mechanism, and a few bytes for each peer. */
static struct coapace_mechanism mechanism;
static COAPACE_STATE(COAPACE_STATE_SIZE_FASOR) peers[PEERS];
static struct message messages[PEERS];
static unsigned transmissions;

/* Ends the program at a status that is a mistake in the program, which its first test shows. */
static void check(int status)
{
    if (status != COAPACE_OK) {
        printf("%s\n", coapace_strerror(status));
        exit(EXIT_FAILURE);
    }
}

/* Draws a random number. A device has a generator for that. */
static uint32_t draw(void)
{
    static uint32_t x = 2463534242u;
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    return x;
}

static struct coapace_cue cue(uint64_t now_us)
{
    struct coapace_cue cue = {now_us, draw(), 1};
    return cue;
}

/* Sends a message. A device writes to its socket or radio. */
static void send_to(int peer, struct message *message, uint64_t now_us)
{
    bool lost = ++transmissions % 4 == 0;
    message->last_us = now_us;
    message->answer_us = lost ? 0 : now_us + SECOND / 5 + (uint64_t)peer * SECOND / 2;
}

static unsigned long ms(uint64_t us)
{
    return (unsigned long)(us / 1000);
}

static void show(int peer, const struct message *message, uint64_t now_us)
{
    printf("%5lu ms: to peer %d, retransmission %u, %lu ms to wait\n", ms(now_us), peer, (unsigned)message->retransmits,
           ms(message->deadline_us - now_us));
}

static void request(int peer, uint64_t now_us)
{
    struct message *message = &messages[peer];
    struct coapace_cue told = cue(now_us);
    uint64_t timeout_us;
    message->retransmits = 0;
    message->first_us = now_us;
    send_to(peer, message, now_us);
    check(coapace_on_start(&mechanism, &peers[peer], &message->exchange, &told, &timeout_us));
    message->deadline_us = now_us + timeout_us;
    show(peer, message, now_us);
}

static void retransmit(int peer, uint64_t now_us)
{
    struct message *message = &messages[peer];
    struct coapace_cue told = cue(now_us);
    uint64_t timeout_us;
    message->retransmits++;
    send_to(peer, message, now_us);
    check(coapace_on_retransmit(&mechanism, &peers[peer], &message->exchange, &told, &timeout_us));
    message->deadline_us = now_us + timeout_us;
    show(peer, message, now_us);
}

static void end(int peer, uint8_t how, uint64_t now_us)
{
    struct message *message = &messages[peer];
    struct coapace_cue told = cue(now_us);
    struct coapace_outcome outcome = {{0, 0, 0, 0, 0, 0}, 0};
    outcome.end = how;
    outcome.sample.since_first_us = now_us - message->first_us;
    outcome.sample.since_last_us = now_us - message->last_us;
    outcome.sample.retransmits = message->retransmits;
    check(coapace_on_end(&mechanism, &peers[peer], &message->exchange, &outcome, &told));
}

/* Finds the next event and its peer. A device sleeps until then. */
static int next(uint64_t *now_us)
{
    int first = 0;
    *now_us = UINT64_MAX;
    for (int peer = 0; peer < PEERS; peer++) {
        const struct message *message = &messages[peer];
        bool answered = message->answer_us > 0 && message->answer_us <= message->deadline_us;
        uint64_t moment_us = answered ? message->answer_us : message->deadline_us;
        if (moment_us < *now_us) {
            *now_us = moment_us;
            first = peer;
        }
    }
    return first;
}

int main(void)
{
    unsigned answers = 0;
    uint64_t now_us = 0;
    check(coapace_init(&mechanism, COAPACE_FASOR));
    for (int peer = 0; peer < PEERS; peer++) {
        check(coapace_state_init(&mechanism, &peers[peer], sizeof peers[peer]));
        request(peer, now_us);
    }
    while (answers < ANSWERS) {
        int peer = next(&now_us);
        const struct message *message = &messages[peer];
        if (now_us == message->answer_us) {
            end(peer, COAPACE_ACKED, now_us);
            answers++;
            request(peer, now_us);
        } else if (message->retransmits < MAX_RETRANSMIT) {
            retransmit(peer, now_us);
        } else {
            /* A device waits longer before it gives up: see Patience in coapace.h. */
            end(peer, COAPACE_GIVEN_UP, now_us);
            request(peer, now_us);
        }
    }
    for (int peer = 0; peer < PEERS; peer++) {
        struct coapace_gauges gauges;
        check(coapace_gauges(&mechanism, &peers[peer], &gauges));
        printf("peer %d: SRTT %lu ms, RTO %lu ms\n", peer, ms(gauges.srtt_us), ms(gauges.rto_us));
    }
    return EXIT_SUCCESS;
}
