/* A stub: Wakaama's core/internals.h. */
#pragma once
#include "liblwm2m.h"

#define COAP_RESPONSE_TIMEOUT 2
#define COAP_SEPARATE_TIMEOUT 15
#define COAP_MAX_RETRANSMIT 4

typedef struct {
    uint16_t mid;
    bool is_empty; /* the stub's own: an acknowledgement whose response follows */
} coap_packet_t;

int transaction_send(lwm2m_context_t *contextP, lwm2m_transaction_t *transacP);
bool transaction_handleResponse(lwm2m_context_t *contextP, void *fromSessionH, coap_packet_t *message, coap_packet_t *response);
void transaction_step(lwm2m_context_t *contextP, time_t currentTime, time_t *timeoutP);
