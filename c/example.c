/* example: a CoAP client on POSIX sockets that keeps to RFC 7252 section 4 with any mechanism of coapace.c.
 *
 *     cc -std=c99 -D_POSIX_C_SOURCE=200112L -Ic c/example.c c/coapace.c -o example
 *     ./example 127.0.0.1 5683 hello 10 ebb
 *
 * It asks a server for one resource so many times, as many at once as the mechanism allows. The parts that are the work of
 * congestion control are depart, time_out, arrive and the loop of main. */
#ifndef ARDUINO /* which compiles every file of this folder */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "coapace.h"

enum { MAX_RETRANSMIT = 4, TRANSMISSIONS = MAX_RETRANSMIT + 2, EXCHANGES = 4, TOKEN = 2 };

/* A request under way. */
struct request {
    bool is_open;
    struct coapace_exchange exchange;
    uint64_t departed_us[TRANSMISSIONS], timeout_us[TRANSMISSIONS]; /* of each transmission */
    uint64_t deadline_us;
    uint8_t retransmits;
    uint16_t message_id;
    unsigned char token[8]; /* the first TOKEN bytes; a copy may have one more */
};

static struct coapace_mechanism mechanism;
static COAPACE_STATE(COAPACE_STATE_SIZE_MAX) server; /* the state of the one destination */
static bool is_silent;                               /* whether the server let the last timeout of an exchange pass */
static struct request requests[EXCHANGES];
static uint16_t outstanding;
static unsigned answered, given_up, copies;
static const char *path;
static int udp;

static uint64_t now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* A device has a generator of random numbers. This one is as good as an example needs. */
static struct coapace_cue cue(uint64_t moment_us)
{
    static uint32_t draw;
    struct coapace_cue made = {moment_us, 0, outstanding};
    draw = draw * 1664525 + 1013904223 + (uint32_t)moment_us;
    made.draw = draw;
    return made;
}

/* Ends the program at a mistake that is its own. */
static void check(int status)
{
    if (status != COAPACE_OK) {
        fprintf(stderr, "example: %s\n", coapace_strerror(status));
        exit(EXIT_FAILURE);
    }
}

/* Sends a confirmable GET, the first time or again. Congestion control may have the ordinal appended to the token. */
static void send_request(struct request *request)
{
    unsigned char datagram[64];
    struct coapace_limits limits;
    size_t token, segment = strlen(path);
    check(coapace_limits(&mechanism, &server, &limits));
    token = coapace_mark_token(limits.marking, request->token, TOKEN, request->retransmits);
    datagram[0] = (unsigned char)(0x40 | token);
    datagram[1] = 1; /* GET */
    datagram[2] = (unsigned char)(request->message_id >> 8);
    datagram[3] = (unsigned char)request->message_id;
    memcpy(&datagram[4], request->token, token);
    datagram[4 + token] = (unsigned char)(0xb0 | segment); /* Uri-Path */
    memcpy(&datagram[5 + token], path, segment);
    (void)!send(udp, datagram, 5 + token + segment, 0); /* an error is like a loss: the timeout passes */
}

/* A transmission departs: the mechanism says how long to wait for its answer, and patience how long at least. */
static void depart(struct request *request)
{
    uint64_t now = now_us(), since_first_us;
    struct coapace_cue told;
    uint64_t *timeout_us = &request->timeout_us[request->retransmits];
    request->departed_us[request->retransmits] = now;
    since_first_us = now - request->departed_us[0];
    told = cue(now);
    if (request->retransmits == 0) {
        check(coapace_on_start(&mechanism, &server, &request->exchange, &told, timeout_us));
    } else {
        check(coapace_on_retransmit(&mechanism, &server, &request->exchange, &told, timeout_us));
    }
    *timeout_us = coapace_patient(*timeout_us, since_first_us, request->retransmits, MAX_RETRANSMIT, is_silent, told.draw);
    request->deadline_us = now + *timeout_us;
    send_request(request);
}

static void end(struct request *request, const struct coapace_outcome *outcome)
{
    struct coapace_cue told = cue(now_us());
    check(coapace_on_end(&mechanism, &server, &request->exchange, outcome, &told));
    request->is_open = false;
    outstanding--;
}

/* The timeout of a request has passed. */
static void time_out(struct request *request)
{
    struct coapace_outcome outcome = {{0, 0, 0, 0, 0, 0}, COAPACE_GIVEN_UP};
    uint64_t now = now_us(), wait_us;
    is_silent = is_silent || request->retransmits >= MAX_RETRANSMIT;
    switch (coapace_on_timeout(now - request->departed_us[0], request->retransmits, MAX_RETRANSMIT, &wait_us)) {
    case COAPACE_RETRANSMIT:
        request->retransmits++;
        copies++;
        depart(request);
        break;
    case COAPACE_WAIT:
        request->deadline_us = now + wait_us;
        break;
    case COAPACE_GIVE_UP:
        given_up++;
        end(request, &outcome);
    }
}

/* Reads a datagram. A response in an acknowledgement, or a separate one, ends the request whose token it has. */
static void arrive(const unsigned char *datagram, size_t size)
{
    struct coapace_limits limits;
    size_t token = size >= 4 ? datagram[0] & 15u : 0;
    if (size < 4 || datagram[0] >> 6 != 1 || token > 8 || size < 4 + token || datagram[1] >> 5 < 2) {
        return; /* no response. A Reset or an empty acknowledgement is left to the timeout in this example */
    }
    if ((datagram[0] >> 4 & 3) == 0) { /* a confirmable response */
        unsigned char acknowledgement[4] = {0x60, 0, datagram[2], datagram[3]};
        (void)!send(udp, acknowledgement, sizeof acknowledgement, 0);
    }
    is_silent = false;
    check(coapace_limits(&mechanism, &server, &limits));
    for (int i = 0; i < EXCHANGES; i++) {
        struct request *request = &requests[i];
        struct coapace_outcome outcome = {{0, 0, 0, 0, 0, 0}, COAPACE_ACKED};
        struct coapace_sample *sample = &outcome.sample;
        uint64_t now = now_us();
        sample->retransmits = request->retransmits;
        if (!request->is_open || !coapace_match_token(limits.marking, request->token, TOKEN, &datagram[4], token, sample)) {
            continue;
        }
        sample->since_first_us = now - request->departed_us[0];
        sample->since_last_us = now - request->departed_us[request->retransmits];
        sample->since_answered_us = now - request->departed_us[sample->answered];
        if (sample->answered < sample->retransmits && sample->since_answered_us >= request->timeout_us[sample->answered]) {
            sample->has_answered = 0; /* it may be an old answer that the server repeated for a later copy */
        }
        answered++;
        end(request, &outcome);
    }
}

static int connect_to(const char *host, const char *port)
{
    struct addrinfo wanted, *found = NULL;
    int made = -1;
    memset(&wanted, 0, sizeof wanted);
    wanted.ai_socktype = SOCK_DGRAM;
    if (getaddrinfo(host, port, &wanted, &found) == 0) {
        made = socket(found->ai_family, SOCK_DGRAM, 0);
        if (made >= 0 && connect(made, found->ai_addr, found->ai_addrlen) != 0) {
            close(made);
            made = -1;
        }
        freeaddrinfo(found);
    }
    return made;
}

int main(int argc, char *argv[])
{
    unsigned long wanted = argc > 4 ? strtoul(argv[4], NULL, 10) : 10, begun = 0;
    if (argc < 4 || strlen(argv[3]) > 12) {
        fprintf(stderr, "usage: example HOST PORT RESOURCE [NUMBER [MECHANISM]]\n");
        return 2;
    }
    path = argv[3];
    check(coapace_parse(&mechanism, argc > 5 ? argv[5] : "ebb"));
    check(coapace_state_init(&mechanism, &server, sizeof server));
    udp = connect_to(argv[1], argv[2]);
    if (udp < 0) {
        fprintf(stderr, "example: cannot reach %s port %s\n", argv[1], argv[2]);
        return EXIT_FAILURE;
    }
    while (answered + given_up < wanted) {
        uint64_t now = now_us(), next_us = now + 1000000, wait_us = COAPACE_NEVER;
        struct pollfd readable = {udp, POLLIN, 0};
        struct request *idle = NULL;
        for (int i = 0; i < EXCHANGES; i++) {
            if (!requests[i].is_open) {
                idle = &requests[i];
            } else if (requests[i].deadline_us <= now) {
                time_out(&requests[i]);
            }
            if (requests[i].is_open && requests[i].deadline_us < next_us) {
                next_us = requests[i].deadline_us;
            }
        }
        if (idle != NULL && begun < wanted) {
            check(coapace_may_start(&mechanism, &server, outstanding, 0, now, &wait_us));
        }
        if (wait_us == 0) {
            idle->is_open = true;
            idle->retransmits = 0;
            idle->message_id = (uint16_t)begun;
            idle->token[0] = (unsigned char)(begun >> 8);
            idle->token[1] = (unsigned char)begun;
            begun++;
            outstanding++;
            depart(idle);
            continue;
        }
        if (wait_us != COAPACE_NEVER && now + wait_us < next_us) {
            next_us = now + wait_us;
        }
        /* poll counts whole milliseconds. */
        if (poll(&readable, 1, next_us > now ? (int)((next_us - now + 999) / 1000) : 0) > 0) {
            unsigned char datagram[1500];
            ssize_t size = recv(udp, datagram, sizeof datagram, 0);
            if (size > 0) {
                arrive(datagram, (size_t)size);
            }
        }
    }
    printf("%u of %lu requests were answered, with %u copies\n", answered, wanted, copies);
    return answered == wanted ? EXIT_SUCCESS : EXIT_FAILURE;
}

#endif
