/* coapace_wakaama.h is the documentation. The linker leads calls of three functions of coap/transaction.c here (--wrap).
 * Licence: MIT OR Apache-2.0. */
#include "coapace_wakaama.h"

#include "coapace_peers.h"
#include "internals.h"

/* The names that --wrap gives. */
int __real_transaction_send(lwm2m_context_t *contextP, lwm2m_transaction_t *transacP);
bool __real_transaction_handleResponse(lwm2m_context_t *contextP, void *fromSessionH, coap_packet_t *message, coap_packet_t *response);
int __wrap_transaction_send(lwm2m_context_t *contextP, lwm2m_transaction_t *transacP);
bool __wrap_transaction_handleResponse(lwm2m_context_t *contextP, void *fromSessionH, coap_packet_t *message, coap_packet_t *response);
void __wrap_transaction_step(lwm2m_context_t *contextP, time_t currentTime, time_t *timeoutP);

static const struct coapace_stock stock = {.patience_ms = UINT32_C(1000) * COAP_RESPONSE_TIMEOUT * ((2u << COAP_MAX_RETRANSMIT) - 1),
                                           .max_retransmit = COAP_MAX_RETRANSMIT};

static struct coapace_peer table[COAPACE_WAKAAMA_PEERS];
static struct coapace_peers peers;
static struct coapace_clock clock_ms;

/* A transaction under way. */
static struct record {
    lwm2m_context_t *context;
    lwm2m_transaction_t *transaction; /* null: free */
    uint16_t message_id;
    uint64_t deadline_us;
    struct coapace_flight flight;
} records[COAPACE_WAKAAMA_TRANSACTIONS];

static uint64_t now_us(void)
{
    return coapace_clock(&clock_ms, coapace_wakaama_clock_ms());
}

/* Returns the record of a transaction, or a free one for null, or null if there is none. */
static struct record *find(const lwm2m_transaction_t *transaction)
{
    for (size_t i = 0; i < COAPACE_WAKAAMA_TRANSACTIONS; i++) {
        if (records[i].transaction == transaction) {
            return &records[i];
        }
    }
    return NULL;
}

static void release(struct record *record, uint8_t end)
{
    coapace_peers_end(&peers, &record->flight, end, now_us());
    record->transaction = NULL;
}

/* Ends the records of transactions that the stack has freed or had acknowledged. */
static void sweep(lwm2m_context_t *context, uint8_t end)
{
    for (size_t i = 0; i < COAPACE_WAKAAMA_TRANSACTIONS; i++) {
        struct record *record = &records[i];
        if (record->transaction != NULL && record->context == context) {
            const lwm2m_transaction_t *t = context->transactionList;
            while (t != NULL && (t != record->transaction || t->mID != record->message_id)) {
                t = t->next;
            }
            if (t == NULL || t->ack_received) {
                release(record, end);
            }
        }
    }
}

int __wrap_transaction_send(lwm2m_context_t *contextP, lwm2m_transaction_t *transacP)
{
    bool is_first = transacP->retrans_counter == 0;
    void *peer = transacP->peerH;
    int result = __real_transaction_send(contextP, transacP);
    struct record *record;
    uint32_t timeout_ms;
    if (result != 0 || !is_first) {
        return result; /* after an error, the transaction is freed */
    }
    if (peers.draw == NULL) {
        (void)coapace_peers_init(&peers, table, COAPACE_WAKAAMA_PEERS, COAPACE_WAKAAMA_MECHANISM, &stock, coapace_wakaama_random);
    }
    /* The memory of a transaction may have been that of another, which was dropped. */
    record = find(transacP);
    record = record != NULL ? record : find(NULL);
    if (record != NULL) {
        timeout_ms = coapace_peers_depart(&peers, &record->flight, &peer, sizeof peer, now_us());
        record->context = contextP;
        record->transaction = timeout_ms > 0 ? transacP : NULL;
        record->message_id = transacP->mID;
        record->deadline_us = now_us() + UINT64_C(1000) * timeout_ms;
    }
    return result;
}

bool __wrap_transaction_handleResponse(lwm2m_context_t *contextP, void *fromSessionH, coap_packet_t *message, coap_packet_t *response)
{
    bool is_found;
    sweep(contextP, COAPACE_CANCELLED);
    is_found = __real_transaction_handleResponse(contextP, fromSessionH, message, response);
    sweep(contextP, COAPACE_ACKED);
    return is_found;
}

/* The timeout of a transaction has passed. Returns whether the stack has freed it. */
static bool expire(lwm2m_context_t *context, struct record *record)
{
    lwm2m_transaction_t *t = record->transaction;
    uint64_t now = now_us();
    uint32_t wait_ms;
    switch (coapace_peers_expire(&peers, &record->flight, now, &wait_ms)) {
    case COAPACE_RETRANSMIT:
        /* The stack sends a copy. It would give up at the late copy of coapace_on_timeout if that counted. */
        t->retrans_counter = (uint8_t)(t->retrans_counter <= COAP_MAX_RETRANSMIT + 1 ? t->retrans_counter : COAP_MAX_RETRANSMIT + 1);
        record->deadline_us = now + UINT64_C(1000) * wait_ms;
        if (__real_transaction_send(context, t) == 0) {
            return false;
        }
        release(record, COAPACE_CANCELLED);
        return true;
    case COAPACE_WAIT:
        record->deadline_us = now + UINT64_C(1000) * wait_ms;
        return false;
    default:
        /* The stack calls the callback without a response, and frees the transaction. */
        record->transaction = NULL;
        t->retrans_counter = COAP_MAX_RETRANSMIT + 2;
        (void)__real_transaction_send(context, t);
        return true;
    }
}

void __wrap_transaction_step(lwm2m_context_t *contextP, time_t currentTime, time_t *timeoutP)
{
    lwm2m_transaction_t *next;
    sweep(contextP, COAPACE_CANCELLED);
    for (lwm2m_transaction_t *t = contextP->transactionList; t != NULL; t = next) {
        struct record *record = find(t);
        bool is_freed = false;
        time_t wait;
        next = t->next;
        if (record != NULL) {
            uint64_t now = now_us();
            is_freed = record->deadline_us <= now && expire(contextP, record);
            wait = is_freed || record->deadline_us <= now ? 1 : (time_t)((record->deadline_us - now + 999999) / 1000000);
        } else {
            /* as the stack does */
            is_freed = t->retrans_time <= currentTime && __real_transaction_send(contextP, t) != 0;
            wait = is_freed || t->retrans_time <= currentTime ? 1 : t->retrans_time - currentTime;
        }
        if (*timeoutP > wait) {
            *timeoutP = wait;
        }
    }
}

uint32_t coapace_wakaama_wait(uint32_t most_ms)
{
    uint64_t now = now_us();
    for (size_t i = 0; i < COAPACE_WAKAAMA_TRANSACTIONS; i++) {
        const struct record *record = &records[i];
        uint64_t wait_ms = record->deadline_us > now ? (record->deadline_us - now + 999) / 1000 : 0;
        if (record->transaction != NULL && wait_ms < most_ms) {
            most_ms = (uint32_t)wait_ms;
        }
    }
    return most_ms;
}
