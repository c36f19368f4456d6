/* What the adapters share: a bounded table of destinations on top of coapace.h, for two kinds of stacks. No heap, no clock, no lock:
 * the adapter brings the time, and holds the stack's lock around every call. Licence: MIT OR Apache-2.0.
 *
 *   - The timer form: the adapter sets the timer of every transmission. coapace_peers_depart, coapace_peers_expire, coapace_peers_end.
 *   - The parameter form: the stack retransmits by itself, from ACK_TIMEOUT, a factor and MAX_RETRANSMIT that can be set for each
 *     request. coapace_peers_advise, coapace_peers_end.
 *
 * None of these stacks can mark copies, so COAPACE_EBB_PLAIN is the mechanism to take. */
#ifndef COAPACE_PEERS_H
#define COAPACE_PEERS_H

#include "coapace.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The bytes that tell one destination from another: an address of IPv6 and a port need 18. */
#ifndef COAPACE_PEER_KEY_SIZE
#define COAPACE_PEER_KEY_SIZE 20
#endif
/* The state of the mechanism: the largest of those in coapace.c for single exchanges, as far as they are compiled. */
#if !defined COAPACE_PEER_STATE_SIZE && defined COAPACE_WITH_COCOA && !COAPACE_WITH_COCOA
#define COAPACE_PEER_STATE_SIZE COAPACE_STATE_SIZE_EBB
#elif !defined COAPACE_PEER_STATE_SIZE
#define COAPACE_PEER_STATE_SIZE COAPACE_STATE_SIZE_COCOA
#endif

/* A destination. Zeros are an unused one. */
struct coapace_peer {
    unsigned char key[COAPACE_PEER_KEY_SIZE];
    uint8_t key_size;
    bool is_silent;       /* the last timeout of an exchange has passed, and nothing came since */
    uint16_t outstanding; /* exchanges under way */
    uint32_t used;        /* `uses` of the table at the last use */
    COAPACE_STATE(COAPACE_PEER_STATE_SIZE) state;
};

/* The stack: what it does by itself, and what it takes. */
struct coapace_stock {
    uint32_t patience_ms;      /* the shortest time after which it gives a request up; at least 62 s count (RFC 7252 section 4.8) */
    uint8_t max_retransmit;    /* its MAX_RETRANSMIT */
    /* From here on for the parameter form alone. */
    uint8_t most_retransmit;   /* the largest MAX_RETRANSMIT that it takes */
    uint32_t span_ms;          /* the shortest time to its last copy; at least 30 s count */
    uint16_t least_factor;     /* the factor from one timeout to the next, in 1/1000: the least that it takes, */
    uint16_t most_factor;      /* and the most. Equal if the factor is fixed */
    uint16_t dither;           /* the factor in 1/1000 by which the stack draws the first timeout longer than it was set; 1000: not */
    uint32_t least_timeout_ms; /* the least ACK_TIMEOUT that it takes */
};

/* The table. */
struct coapace_peers {
    struct coapace_mechanism mechanism;
    struct coapace_stock stock;
    struct coapace_peer *table;
    size_t count;
    uint32_t uses;
    uint32_t (*draw)(void); /* returns a random number of 32 bits */
};

/* An exchange under way. Zeros are none. */
struct coapace_flight {
    struct coapace_peer *peer; /* null if no exchange is under way, or if the table had no place for it */
    struct coapace_exchange exchange;
    struct coapace_parameters parameters; /* what the stack uses; max_retransmit 0 with the timer form */
    uint64_t first_us, last_us;           /* the departures of the first and of the last transmission */
    uint8_t retransmits;
};

/* Prepares a table of `count` destinations for a mechanism, an enum coapace_name. COAPACE_UNKNOWN_MECHANISM; COAPACE_TOO_SMALL if
 * COAPACE_PEER_STATE_SIZE is too small for the mechanism. */
int coapace_peers_init(struct coapace_peers *peers, struct coapace_peer *table, size_t count, int mechanism,
                       const struct coapace_stock *stock, uint32_t (*draw)(void));

/* Timer form: the first transmission departs. Returns the timeout in ms; 0 if there is no place for the destination, since all of
 * the table have exchanges under way, or if the key is too long. Then the stack's own timeout is in force, and flight->peer is null.
 * The destination that was used longest ago makes place. */
uint32_t coapace_peers_depart(struct coapace_peers *peers, struct coapace_flight *flight, const void *key, size_t key_size,
                              uint64_t now_us);

/* Timer form: the timeout of a flight with a peer has passed. COAPACE_RETRANSMIT: send a copy, and wait *wait_ms. COAPACE_WAIT: only
 * wait. COAPACE_GIVE_UP: the exchange is over. */
enum coapace_action coapace_peers_expire(struct coapace_peers *peers, struct coapace_flight *flight, uint64_t now_us, uint32_t *wait_ms);

/* Parameter form: a request departs. Writes the numbers to set for it, and returns true; false if there is no place, as above. */
bool coapace_peers_advise(struct coapace_peers *peers, struct coapace_flight *flight, const void *key, size_t key_size,
                          uint64_t now_us, struct coapace_parameters *parameters);

/* Parameter form: the stack tells, before the end, that it has made this many copies, the last one at last_us. Without this, the
 * time that has passed tells it. */
void coapace_peers_copies(struct coapace_peers *peers, struct coapace_flight *flight, uint8_t copies, uint64_t last_us);

/* Parameter form: the next request of the same transfer departs, with the numbers of the one before, which has ended. `peer` is the
 * destination of that one. */
void coapace_peers_continue(struct coapace_peers *peers, struct coapace_flight *flight, struct coapace_peer *peer, uint64_t now_us);

/* Ends a flight, in a way of enum coapace_end. Nothing happens if it is over, or had no place. */
void coapace_peers_end(struct coapace_peers *peers, struct coapace_flight *flight, uint8_t end, uint64_t now_us);

#ifdef __cplusplus
}
#endif

#endif
