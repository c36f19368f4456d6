/* Coapace for Contiki-NG: the adapter sets the timer of every confirmable message. The linker leads calls of coap_send_transaction and
 * coap_clear_transaction here (--wrap), so neither Contiki-NG nor the program changes. One thread, as all of Contiki-NG.
 * Licence: MIT OR Apache-2.0. */
#include "coap-transactions.h"
#include "lib/random.h"

#include <string.h>

#include "coapace_peers.h"

#ifndef COAPACE_CONTIKI_PEERS
#define COAPACE_CONTIKI_PEERS 8 /* destinations that are remembered */
#endif
#ifndef COAPACE_CONTIKI_MECHANISM
#if COAPACE_WITH_EBB
#define COAPACE_CONTIKI_MECHANISM COAPACE_EBB_PLAIN
#elif COAPACE_WITH_COCOA
#define COAPACE_CONTIKI_MECHANISM COAPACE_COCOA
#elif COAPACE_WITH_FASOR
#define COAPACE_CONTIKI_MECHANISM COAPACE_FASOR
#elif COAPACE_WITH_LINUX_RTO
#define COAPACE_CONTIKI_MECHANISM COAPACE_LINUX_RTO
#else
#define COAPACE_CONTIKI_MECHANISM COAPACE_DEFAULT
#endif
#endif

/* The names that --wrap gives. */
void __real_coap_send_transaction(coap_transaction_t *t);
void __real_coap_clear_transaction(coap_transaction_t *t);
void __wrap_coap_send_transaction(coap_transaction_t *t);
void __wrap_coap_clear_transaction(coap_transaction_t *t);

static const struct coapace_stock stock = {.patience_ms = UINT32_C(1000) * COAP_RESPONSE_TIMEOUT * ((2u << COAP_MAX_RETRANSMIT) - 1),
                                           .max_retransmit = COAP_MAX_RETRANSMIT};

static struct coapace_peer table[COAPACE_CONTIKI_PEERS];
static struct coapace_peers peers;

/* A transaction under way. */
static struct record {
    coap_transaction_t *transaction; /* null: free */
    struct coapace_flight flight;
} records[COAP_MAX_OPEN_TRANSACTIONS];

static uint64_t now_us(void)
{
    return coap_timer_uptime() * 1000;
}

static uint32_t draw(void)
{
    return (uint32_t)random_rand() << 16 ^ random_rand();
}

/* Returns the record of a transaction, or a free one for null, or null if there is none. */
static struct record *find(const coap_transaction_t *t)
{
    for (size_t i = 0; i < COAP_MAX_OPEN_TRANSACTIONS; i++) {
        if (records[i].transaction == t) {
            return &records[i];
        }
    }
    return NULL;
}

/* The timer of a transaction has run down. */
static void expire(coap_timer_t *timer)
{
    coap_transaction_t *t = coap_timer_get_user_data(timer);
    struct record *record = t != NULL ? find(t) : NULL;
    uint32_t wait_ms;
    if (record == NULL) {
        return;
    }
    switch (coapace_peers_expire(&peers, &record->flight, now_us(), &wait_ms)) {
    case COAPACE_RETRANSMIT:
        /* The stack sends a copy. It would give up at the late copy of coapace_on_timeout if that counted. */
        t->retrans_counter = (uint8_t)(t->retrans_counter + (t->retrans_counter < COAP_MAX_RETRANSMIT ? 1 : 0));
        __real_coap_send_transaction(t);
        t->retrans_interval = wait_ms;
        coap_timer_set(&t->retrans_timer, wait_ms);
        break;
    case COAPACE_WAIT:
        coap_timer_set(&t->retrans_timer, wait_ms);
        break;
    case COAPACE_GIVE_UP:
        /* The stack frees the transaction and calls its callback without a response. */
        record->transaction = NULL;
        t->retrans_counter = COAP_MAX_RETRANSMIT + 1;
        __real_coap_send_transaction(t);
    }
}

void __wrap_coap_send_transaction(coap_transaction_t *t)
{
    bool is_confirmable = (t->message[0] & COAP_HEADER_TYPE_MASK) >> COAP_HEADER_TYPE_POSITION == COAP_TYPE_CON;
    unsigned char key[sizeof t->endpoint.ipaddr + sizeof t->endpoint.port + sizeof t->endpoint.secure];
    struct record *record;
    uint32_t timeout_ms;
    __real_coap_send_transaction(t);
    if (!is_confirmable || t->retrans_counter != 0) {
        return; /* a message without a timer is freed already */
    }
    if (peers.draw == NULL) {
        (void)coapace_peers_init(&peers, table, COAPACE_CONTIKI_PEERS, COAPACE_CONTIKI_MECHANISM, &stock, draw);
    }
    /* The memory of a transaction may have been that of another, which was dropped. */
    record = find(t);
    record = record != NULL ? record : find(NULL);
    if (record == NULL) {
        return;
    }
    memcpy(key, &t->endpoint.ipaddr, sizeof t->endpoint.ipaddr);
    memcpy(key + sizeof t->endpoint.ipaddr, &t->endpoint.port, sizeof t->endpoint.port);
    key[sizeof key - 1] = t->endpoint.secure;
    timeout_ms = coapace_peers_depart(&peers, &record->flight, key, sizeof key, now_us());
    record->transaction = timeout_ms > 0 ? t : NULL;
    if (timeout_ms > 0) {
        t->retrans_interval = timeout_ms;
        coap_timer_set_callback(&t->retrans_timer, expire);
        coap_timer_set(&t->retrans_timer, timeout_ms);
    }
}

void __wrap_coap_clear_transaction(coap_transaction_t *t)
{
    /* The engine clears a transaction as its acknowledgement arrives, or its Reset, which tells the round-trip time as well. */
    struct record *record = t != NULL ? find(t) : NULL;
    if (record != NULL) {
        coapace_peers_end(&peers, &record->flight, COAPACE_ACKED, now_us());
        record->transaction = NULL;
    }
    __real_coap_clear_transaction(t);
}
