/* For the test: what Contiki-NG's coap-transactions.c does with a transaction, in a file of its own as there. */
#include <string.h>

#include "stack.h"


static void retransmit(coap_timer_t *timer)
{
    coap_transaction_t *t = coap_timer_get_user_data(timer);
    t->retrans_counter++;
    coap_send_transaction(t);
}

void coap_send_transaction(coap_transaction_t *t)
{
    if ((t->message[0] & COAP_HEADER_TYPE_MASK) >> COAP_HEADER_TYPE_POSITION != COAP_TYPE_CON) {
        stack_send();
        coap_clear_transaction(t);
    } else if (t->retrans_counter <= COAP_MAX_RETRANSMIT) {
        stack_send();
        if (t->retrans_counter == 0) {
            coap_timer_set_callback(&t->retrans_timer, retransmit);
            t->retrans_timer.user_data = t;
            t->retrans_interval = 1000 * COAP_RESPONSE_TIMEOUT + stack_draw() % 1501;
        } else {
            t->retrans_interval <<= 1;
        }
        coap_timer_set(&t->retrans_timer, t->retrans_interval);
    } else {
        void (*callback)(void *, void *) = t->callback;
        void *data = t->callback_data;
        coap_clear_transaction(t);
        callback(data, NULL);
    }
}

void coap_clear_transaction(coap_transaction_t *t)
{
    memset(t, 0, sizeof *t);
}
