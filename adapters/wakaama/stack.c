/* For the test: what Wakaama's coap/transaction.c does with a transaction, in a file of its own as there. */
#include "stack.h"

#include <stddef.h>

static void remove_transaction(lwm2m_context_t *context, lwm2m_transaction_t *t)
{
    lwm2m_transaction_t **place = &context->transactionList;
    while (*place != t) {
        place = &(*place)->next;
    }
    *place = t->next;
}

int transaction_send(lwm2m_context_t *contextP, lwm2m_transaction_t *transacP)
{
    time_t timeout = 0;
    if (transacP->ack_received || transacP->retrans_counter > COAP_MAX_RETRANSMIT + 1) {
        transacP->callback(contextP, transacP, NULL);
        remove_transaction(contextP, transacP);
        return -1;
    }
    if (transacP->retrans_counter == 0) {
        transacP->retrans_time = stack_seconds() + COAP_RESPONSE_TIMEOUT;
        transacP->retrans_counter = 1;
    } else {
        timeout = COAP_RESPONSE_TIMEOUT << (transacP->retrans_counter - 1);
    }
    stack_send();
    transacP->retrans_time += timeout;
    transacP->retrans_counter++;
    return 0;
}

bool transaction_handleResponse(lwm2m_context_t *contextP, void *fromSessionH, coap_packet_t *message, coap_packet_t *response)
{
    (void)fromSessionH, (void)response;
    for (lwm2m_transaction_t *t = contextP->transactionList; t != NULL; t = t->next) {
        if (t->mID == message->mid && message->is_empty) {
            t->ack_received = 1;
            t->retrans_time = stack_seconds() + COAP_SEPARATE_TIMEOUT;
            return true;
        }
        if (t->mID == message->mid) {
            t->callback(contextP, t, message);
            remove_transaction(contextP, t);
            return true;
        }
    }
    return false;
}

void transaction_step(lwm2m_context_t *contextP, time_t currentTime, time_t *timeoutP)
{
    lwm2m_transaction_t *next;
    for (lwm2m_transaction_t *t = contextP->transactionList; t != NULL; t = next) {
        time_t wait = 1;
        next = t->next;
        if (t->retrans_time > currentTime || transaction_send(contextP, t) == 0) {
            wait = t->retrans_time > currentTime ? t->retrans_time - currentTime : 1;
        }
        *timeoutP = *timeoutP > wait ? wait : *timeoutP;
    }
}
