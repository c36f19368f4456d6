/* Coapace in libcoap with congestion-control.patch: a mechanism decides when each confirmable message of a session is sent again,
 * and when it is given up. Licence: MIT OR Apache-2.0. */
#ifndef COAPACE_OPS_H
#define COAPACE_OPS_H

#include <coap3/coap.h>

#include "coapace.h"

/* The number of messages of a session that may wait for an answer under Coapace at the same time. More than these have the timeouts
 * of libcoap. NSTART is 1 unless the program calls coap_session_set_nstart. */
#ifndef COAPACE_OPS_SLOTS
#define COAPACE_OPS_SLOTS 4
#endif

/* A message that waits for an answer. Opaque. */
struct coapace_ops_slot {
    struct coapace_ops *owner; /* null if the slot is free */
    coap_tick_t first, last;   /* when the first transmission departed, and the last */
    uint8_t retransmits;
    struct coapace_exchange exchange;
};

/* The state of a session. Opaque. The caller keeps it until the session is gone. */
struct coapace_ops {
    struct coapace_mechanism mechanism;
    struct coapace_clock clock;
    bool is_silent;    /* the last timeout of a message has passed, and nothing arrived since */
    uint32_t least_us; /* the least round-trip time of a message without a copy; 0 before there is one */
    COAPACE_STATE(COAPACE_STATE_SIZE_MAX) state;
    struct coapace_ops_slot slots[COAPACE_OPS_SLOTS];
};

/* Has a mechanism time the confirmable messages that this session sends from now on. It is called once for a session. Not for
 * tide. Of a mechanism, the timeouts alone are used: tokens are not marked. COAPACE_OK, COAPACE_NULL_POINTER,
 * COAPACE_BAD_MECHANISM. */
int coapace_ops_attach(struct coapace_ops *peer, coap_session_t *session, const struct coapace_mechanism *mechanism);

#endif
