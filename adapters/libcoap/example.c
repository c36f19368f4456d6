/* example: a client on libcoap that asks a server for its root resource ten times, with a mechanism of Coapace.
 *
 *     cc -I. -I../../c example.c coapace_setters.c ../../c/coapace.c $(pkg-config --cflags --libs libcoap-3-notls) -o example
 *     ./example 127.0.0.1 5683 10 ebb
 *
 * It runs on libcoap as it is. The lines that switch Coapace on have a comment. With the patch there is one such line:
 *
 *     coapace_ops_attach(&peer, session, &mechanism);
 */
#include <stdio.h>
#include <stdlib.h>

#include <arpa/inet.h>

#include "coapace_setters.h"

static struct coapace_setters peer; /* the state of the session */
static bool is_over;
static unsigned answered;

static int on_event(coap_session_t *session, coap_event_t event)
{
    (void)session;
    coapace_setters_on_event(&peer, event); /* counts retransmissions */
    return 0;
}

static coap_response_t on_response(coap_session_t *session, const coap_pdu_t *sent, const coap_pdu_t *response, coap_mid_t mid)
{
    (void)session, (void)sent, (void)mid;
    coapace_setters_on_response(&peer, response); /* learns the round-trip time */
    answered++;
    is_over = true;
    return COAP_RESPONSE_OK;
}

static void on_nack(coap_session_t *session, const coap_pdu_t *sent, coap_nack_reason_t reason, coap_mid_t mid)
{
    (void)session, (void)sent;
    coapace_setters_on_nack(&peer, reason, mid); /* learns that the peer is silent */
    if (reason != COAP_NACK_ICMP_ISSUE) {        /* after which libcoap goes on to retransmit */
        is_over = true;
    }
}

/* Returns a request with a token, or null. */
static coap_pdu_t *new_get(coap_session_t *session)
{
    coap_pdu_t *request = coap_new_pdu(COAP_MESSAGE_CON, COAP_REQUEST_CODE_GET, session);
    uint8_t token[8];
    size_t length;
    if (request != NULL) {
        coap_session_new_token(session, &length, token);
        coap_add_token(request, length, token);
    }
    return request;
}

int main(int argc, char *argv[])
{
    unsigned long wanted = argc > 3 ? strtoul(argv[3], NULL, 10) : 10;
    struct coapace_mechanism mechanism;
    coap_context_t *context;
    coap_session_t *session;
    coap_address_t server;
    int status;
    coap_address_init(&server);
    server.size = sizeof server.addr.sin;
    server.addr.sin.sin_family = AF_INET;
    if (argc < 3 || inet_pton(AF_INET, argv[1], &server.addr.sin.sin_addr) != 1) {
        fprintf(stderr, "usage: example ADDRESS PORT [NUMBER [MECHANISM]]\n");
        return 2;
    }
    server.addr.sin.sin_port = htons((uint16_t)strtoul(argv[2], NULL, 10));
    status = coapace_parse(&mechanism, argc > 4 ? argv[4] : "ebb");
    if (status == COAPACE_OK) {
        status = coapace_setters_init(&peer, &mechanism);
    }
    if (status != COAPACE_OK) {
        fprintf(stderr, "example: %s\n", coapace_strerror(status));
        return 2;
    }
    coap_startup();
    context = coap_new_context(NULL);
    session = context != NULL ? coap_new_client_session(context, NULL, &server, COAP_PROTO_UDP) : NULL;
    if (session == NULL) {
        fprintf(stderr, "example: libcoap cannot open a session to %s port %s\n", argv[1], argv[2]);
        return EXIT_FAILURE;
    }
    coap_register_event_handler(context, on_event);
    coap_register_response_handler(context, on_response);
    coap_register_nack_handler(context, on_nack);
    for (unsigned long i = 0; i < wanted; i++) {
        coap_pdu_t *request = new_get(session);
        is_over = request == NULL || coapace_setters_send(&peer, session, request) == COAP_INVALID_MID; /* for coap_send */
        while (!is_over) {
            coap_io_process(context, COAP_IO_WAIT);
        }
    }
    printf("%u of %lu requests were answered\n", answered, wanted);
    coap_session_release(session);
    coap_free_context(context);
    coap_cleanup();
    return answered == wanted ? EXIT_SUCCESS : EXIT_FAILURE;
}
