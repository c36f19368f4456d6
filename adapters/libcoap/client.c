/* The client of ./client: many sessions of libcoap in one process, each of which asks one server again and again.
 *
 *     client MECHANISM ADDRESS PORT COUNT CLIENTS
 *
 * MECHANISM is `stock`, or one of coapace.c: with WITH_OPS by the patch, else by the setters. Each request that has ended is a line
 * "CLIENT MILLISECONDS ok" or "CLIENT MILLISECONDS failed". Licence: MIT OR Apache-2.0. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <netdb.h>
#include <time.h>

#include <coap3/coap.h>

#ifdef WITH_OPS
#include "coapace_ops.h"
#else
#include "coapace_setters.h"
#endif

struct client {
    coap_session_t *session;
    uint64_t begun_us;
    uint32_t requests; /* the token of the last one */
    bool is_waiting;
#ifdef WITH_OPS
    struct coapace_ops peer;
#else
    struct coapace_setters peer;
#endif
};

static bool is_stock;
static unsigned long count, running;

static uint64_t now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static void fail(const char *what)
{
    fprintf(stderr, "client: %s\n", what);
    exit(EXIT_FAILURE);
}

static void ask(struct client *client)
{
    coap_pdu_t *request = coap_new_pdu(COAP_MESSAGE_CON, COAP_REQUEST_CODE_GET, client->session);
    coap_mid_t mid;
    client->requests++;
    if (request == NULL || !coap_add_token(request, sizeof client->requests, (const uint8_t *)&client->requests)) {
        fail("libcoap has no memory");
    }
    client->begun_us = now_us();
    client->is_waiting = true;
#ifdef WITH_OPS
    mid = coap_send(client->session, request);
#else
    mid = is_stock ? coap_send(client->session, request) : coapace_setters_send(&client->peer, client->session, request);
#endif
    if (mid == COAP_INVALID_MID) {
        fail("libcoap does not send");
    }
}

/* A request has ended, and the next one begins. */
static void end(struct client *client, const char *how)
{
    uint64_t us = now_us() - client->begun_us;
    client->is_waiting = false;
    printf("%u %" PRIu64 ".%03u %s\n", (unsigned)(client - (struct client *)coap_get_app_data(coap_session_get_context(client->session))),
           us / 1000, (unsigned)(us % 1000), how);
    if (client->requests < count) {
        ask(client);
    } else {
        running--;
    }
}

static int on_event(coap_session_t *session, coap_event_t event)
{
#ifdef WITH_OPS
    (void)session, (void)event;
#else
    struct client *client = coap_session_get_app_data(session);
    if (client != NULL && !is_stock) {
        coapace_setters_on_event(&client->peer, event);
    }
#endif
    return 0;
}

static coap_response_t on_response(coap_session_t *session, const coap_pdu_t *sent, const coap_pdu_t *response, coap_mid_t mid)
{
    struct client *client = coap_session_get_app_data(session);
    coap_bin_const_t token = coap_pdu_get_token(response);
    (void)sent, (void)mid;
#ifndef WITH_OPS
    if (!is_stock) {
        coapace_setters_on_response(&client->peer, response);
    }
#endif
    if (client->is_waiting && token.length == sizeof client->requests && memcmp(token.s, &client->requests, token.length) == 0) {
        end(client, "ok");
    }
    return COAP_RESPONSE_OK;
}

static void on_nack(coap_session_t *session, const coap_pdu_t *sent, coap_nack_reason_t reason, coap_mid_t mid)
{
    struct client *client = coap_session_get_app_data(session);
    (void)sent;
#ifdef WITH_OPS
    (void)mid;
#else
    if (!is_stock) {
        coapace_setters_on_nack(&client->peer, reason, mid);
    }
#endif
    if (client->is_waiting && reason != COAP_NACK_ICMP_ISSUE) { /* after which libcoap goes on to retransmit */
        end(client, "failed");
    }
}

int main(int argc, char *argv[])
{
    unsigned long clients = argc == 6 ? strtoul(argv[5], NULL, 10) : 0;
    struct coapace_mechanism mechanism;
    struct addrinfo wanted, *found = NULL;
    struct client *all;
    coap_context_t *context;
    coap_address_t server;
    if (clients == 0 || clients > 10000) {
        fprintf(stderr, "usage: client MECHANISM ADDRESS PORT COUNT CLIENTS, with at most 10000 clients\n");
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    is_stock = strcmp(argv[1], "stock") == 0;
    if (coapace_parse(&mechanism, is_stock ? "default" : argv[1]) != COAPACE_OK) {
        fprintf(stderr, "client: coapace.c has no mechanism \"%s\"\n", argv[1]);
        return 2;
    }
    memset(&wanted, 0, sizeof wanted);
    wanted.ai_socktype = SOCK_DGRAM;
    if (getaddrinfo(argv[2], argv[3], &wanted, &found) != 0) {
        fail("the server has no such address");
    }
    coap_address_init(&server);
    server.size = found->ai_addrlen;
    memcpy(&server.addr, found->ai_addr, found->ai_addrlen);
    freeaddrinfo(found);
    count = running = 0;
    coap_startup();
    coap_set_log_level(COAP_LOG_CRIT); /* stock warns of each request that fails */
    context = coap_new_context(NULL);
    all = calloc(clients, sizeof *all);
    if (context == NULL || all == NULL) {
        fail("no memory");
    }
    coap_set_app_data(context, all);
    coap_register_event_handler(context, on_event);
    coap_register_response_handler(context, on_response);
    coap_register_nack_handler(context, on_nack);
    count = strtoul(argv[4], NULL, 10);
    for (unsigned long i = 0; i < clients; i++) {
        int status = COAPACE_OK;
        all[i].session = coap_new_client_session(context, NULL, &server, COAP_PROTO_UDP);
        if (all[i].session == NULL) {
            fail("libcoap does not open a session");
        }
        coap_session_set_app_data(all[i].session, &all[i]);
        if (!is_stock) {
#ifdef WITH_OPS
            status = coapace_ops_attach(&all[i].peer, all[i].session, &mechanism);
#else
            status = coapace_setters_init(&all[i].peer, &mechanism);
#endif
        }
        if (status != COAPACE_OK) {
            fail(coapace_strerror(status));
        }
    }
    for (unsigned long i = 0; i < clients && count > 0; i++) {
        running++;
        ask(&all[i]);
    }
    while (running > 0) {
        coap_io_process(context, COAP_IO_WAIT);
    }
    for (unsigned long i = 0; i < clients; i++) {
        coap_session_release(all[i].session);
    }
    coap_free_context(context);
    coap_cleanup();
    free(all);
    return EXIT_SUCCESS;
}
