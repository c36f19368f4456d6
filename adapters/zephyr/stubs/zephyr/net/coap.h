/* A stub: the part of Zephyr's CoAP library that the adapter uses. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <zephyr/net/socket.h>
#include <zephyr/version.h>

enum coap_method { COAP_METHOD_GET = 1 };

struct coap_packet {
    uint8_t *data;
    uint16_t offset;
};

struct coap_transmission_parameters {
    uint32_t ack_timeout;
#ifdef CONFIG_COAP_RANDOMIZE_ACK_TIMEOUT
    uint16_t ack_random_percent;
#endif
    uint16_t coap_backoff_percent;
    uint8_t max_retransmission;
};

struct coap_pending {
    int64_t t0;
    uint32_t timeout;
    uint8_t retries;
    struct coap_transmission_parameters params;
};

struct coap_transmission_parameters coap_get_transmission_parameters(void);
int coap_pending_init(struct coap_pending *pending, const struct coap_packet *request, const stub_sockaddr *addr,
                      const struct coap_transmission_parameters *params);
bool coap_pending_cycle(struct coap_pending *pending);
