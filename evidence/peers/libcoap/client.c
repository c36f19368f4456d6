/* client ADDRESS PORT PATH PAYLOAD: for every number N on standard input, makes N GETs one after the other, and prints the
 * number answered with the payload. */
#define _POSIX_C_SOURCE 200809L
#include <arpa/inet.h>
#include <coap3/coap.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *payload;
static int ended;
static unsigned long answered;

static coap_response_t on_response(coap_session_t *session, const coap_pdu_t *sent, const coap_pdu_t *received,
                                   const coap_mid_t mid) {
    (void)session, (void)sent, (void)mid;
    size_t length;
    const uint8_t *data;
    ended = 1;
    answered += coap_pdu_get_code(received) == COAP_RESPONSE_CODE_CONTENT && coap_get_data(received, &length, &data) &&
                length == strlen(payload) && memcmp(data, payload, length) == 0;
    return COAP_RESPONSE_OK;
}

static void on_nack(coap_session_t *session, const coap_pdu_t *sent, const coap_nack_reason_t reason, const coap_mid_t mid) {
    (void)session, (void)sent, (void)reason, (void)mid;
    ended = 1;
}

static int get(coap_context_t *context, coap_session_t *session, const char *path) {
    coap_pdu_t *pdu = coap_new_pdu(COAP_MESSAGE_CON, COAP_REQUEST_CODE_GET, session);
    uint8_t token[8];
    size_t length;
    coap_session_new_token(session, &length, token);
    if (!pdu || !coap_add_token(pdu, length, token) ||
        !coap_add_option(pdu, COAP_OPTION_URI_PATH, strlen(path), (const uint8_t *)path))
        return 0;
    ended = 0;
    if (coap_send(session, pdu) == COAP_INVALID_MID)
        return 0;
    while (!ended)
        if (coap_io_process(context, COAP_IO_WAIT) < 0)
            return 0;
    return 1;
}

int main(int argc, char **argv) {
    if (argc != 5) {
        fprintf(stderr, "usage: client ADDRESS PORT PATH PAYLOAD\n");
        return 2;
    }
    payload = argv[4];

    coap_address_t address;
    coap_address_init(&address);
    address.size = sizeof address.addr.sin;
    address.addr.sin.sin_family = AF_INET;
    address.addr.sin.sin_port = htons((uint16_t)atoi(argv[2]));
    if (inet_pton(AF_INET, argv[1], &address.addr.sin.sin_addr) != 1) {
        fprintf(stderr, "no address: %s\n", argv[1]);
        return 2;
    }

    coap_startup();
    coap_context_t *context = coap_new_context(NULL);
    coap_session_t *session = context ? coap_new_client_session(context, NULL, &address, COAP_PROTO_UDP) : NULL;
    if (!session) {
        fprintf(stderr, "no session\n");
        return 1;
    }
    coap_register_response_handler(context, on_response);
    coap_register_nack_handler(context, on_nack);
    unsigned long count;
    while (scanf("%lu", &count) == 1) {
        answered = 0;
        for (unsigned long i = 0; i < count; i++)
            if (!get(context, session, argv[3])) {
                fprintf(stderr, "cannot send\n");
                return 1;
            }
        printf("%lu\n", answered);
        fflush(stdout);
    }
    return 0;
}
