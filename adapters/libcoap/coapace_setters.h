/* Coapace in libcoap as it is, by the setters of a session: before each request a mechanism sets the numbers of RFC 7252
 * section 4.8, and it learns from the end. README.md says what this loses against coapace_ops.h. Licence: MIT OR Apache-2.0.
 *
 * libcoap has one handler of events, responses and failures in a context. The program registers its own, as always, and calls the
 * functions below in them, and coapace_setters_send in place of coap_send. They are for one thread at a time, like the session. */
#ifndef COAPACE_SETTERS_H
#define COAPACE_SETTERS_H

#include <coap3/coap.h>

#include "coapace.h"

/* The state of a client session. Opaque. The caller keeps it as long as the session. */
struct coapace_setters {
    struct coapace_mechanism mechanism;
    struct coapace_clock clock;
    struct coapace_parameters parameters; /* of the request under way */
    struct coapace_exchange exchange;
    COAPACE_STATE(COAPACE_STATE_SIZE_MAX) state;
    coap_tick_t departed;
    coap_mid_t mid;         /* of the request under way; COAP_INVALID_MID if there is none */
    uint8_t token[8];
    uint8_t token_length;
    uint8_t retransmits;    /* copies that libcoap reported */
    bool is_silent;         /* the last request was given up */
    uint32_t least_us;      /* the least round-trip time of a request without a copy; 0 before there is one */
};

/* Begins the state of a session, with any mechanism but tide. COAPACE_OK, COAPACE_NULL_POINTER, COAPACE_BAD_MECHANISM. */
int coapace_setters_init(struct coapace_setters *peer, const struct coapace_mechanism *mechanism);

/* Sets the numbers of the session for this request, and sends it by coap_send, whose result it returns. While one request is
 * under way, others have its numbers, and teach the mechanism nothing. */
coap_mid_t coapace_setters_send(struct coapace_setters *peer, coap_session_t *session, coap_pdu_t *request);

/* To be called in the handlers of events, of responses and of failures, for the session of `peer`. */
void coapace_setters_on_event(struct coapace_setters *peer, coap_event_t event);
void coapace_setters_on_response(struct coapace_setters *peer, const coap_pdu_t *response);
void coapace_setters_on_nack(struct coapace_setters *peer, coap_nack_reason_t reason, coap_mid_t mid);

#endif
