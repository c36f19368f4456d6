/* A stub: the part of Wakaama that the adapter uses. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

typedef struct lwm2m_context lwm2m_context_t;
typedef struct _lwm2m_transaction_ lwm2m_transaction_t;
typedef void (*lwm2m_transaction_callback_t)(lwm2m_context_t *contextP, lwm2m_transaction_t *transacP, void *message);

struct _lwm2m_transaction_ {
    lwm2m_transaction_t *next;
    uint16_t mID;
    void *peerH;
    uint8_t ack_received;
    uint8_t retrans_counter;
    time_t retrans_time;
    lwm2m_transaction_callback_t callback;
};

struct lwm2m_context {
    lwm2m_transaction_t *transactionList;
};
