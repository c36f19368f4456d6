/* server ADDRESS PORT PATH PAYLOAD: one resource. */
#define _POSIX_C_SOURCE 200809L
#include <arpa/inet.h>
#include <coap3/coap.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *payload;

static void get(coap_resource_t *resource, coap_session_t *session, const coap_pdu_t *request,
                const coap_string_t *query, coap_pdu_t *response) {
    (void)resource, (void)session, (void)request, (void)query;
    coap_pdu_set_code(response, COAP_RESPONSE_CODE_CONTENT);
    coap_add_data(response, strlen(payload), (const uint8_t *)payload);
}

int main(int argc, char **argv) {
    if (argc != 5) {
        fprintf(stderr, "usage: server ADDRESS PORT PATH PAYLOAD\n");
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
    coap_resource_t *resource = coap_resource_init(coap_make_str_const(argv[3]), 0);
    if (!context || !resource || !coap_new_endpoint(context, &address, COAP_PROTO_UDP)) {
        fprintf(stderr, "cannot listen\n");
        return 1;
    }
    coap_register_request_handler(resource, COAP_REQUEST_GET, get);
    coap_add_resource(context, resource);
    while (coap_io_process(context, COAP_IO_WAIT) >= 0) {
    }
    return 1;
}
