/* A stub: the part of Contiki-NG's CoAP that the adapter uses. */
#pragma once
#include <stdint.h>

#define COAP_RESPONSE_TIMEOUT 3
#define COAP_MAX_RETRANSMIT 4
#define COAP_MAX_OPEN_TRANSACTIONS 4
#define COAP_TYPE_CON 0
#define COAP_HEADER_TYPE_MASK 0x30
#define COAP_HEADER_TYPE_POSITION 4

typedef struct {
    uint8_t u8[16];
} uip_ipaddr_t;
typedef struct {
    uip_ipaddr_t ipaddr;
    uint16_t port;
    uint8_t secure;
} coap_endpoint_t;

typedef struct coap_timer coap_timer_t;
struct coap_timer {
    void (*callback)(coap_timer_t *);
    void *user_data;
    uint64_t expiration_time;
};

typedef struct coap_transaction {
    uint16_t mid;
    coap_timer_t retrans_timer;
    uint32_t retrans_interval;
    uint8_t retrans_counter;
    coap_endpoint_t endpoint;
    void (*callback)(void *data, void *response);
    void *callback_data;
    uint8_t message[8];
} coap_transaction_t;

uint64_t coap_timer_uptime(void);
void coap_timer_set(coap_timer_t *timer, uint64_t time);
static inline void coap_timer_set_callback(coap_timer_t *timer, void (*callback)(coap_timer_t *)) { timer->callback = callback; }
static inline void *coap_timer_get_user_data(coap_timer_t *timer) { return timer->user_data; }

void coap_send_transaction(coap_transaction_t *t);
void coap_clear_transaction(coap_transaction_t *t);
