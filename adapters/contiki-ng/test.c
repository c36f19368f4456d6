/* Drives the adapter through a copy of Contiki-NG's transactions, on a simulated path with loss. The linker wraps their functions. */
#include <string.h>

#include "../common/trial.h"
#include "lib/random.h"
#include "stack.h"

void __real_coap_send_transaction(coap_transaction_t *t);
void __real_coap_clear_transaction(coap_transaction_t *t);

/* The other transactions of the test take no place in the pool of the trial. */
static coap_transaction_t transaction;
static enum { UNDER_WAY, ANSWERED, FAILED } state;
static bool is_dropped;

uint64_t coap_timer_uptime(void) { return trial.now_ms; }
void coap_timer_set(coap_timer_t *timer, uint64_t time) { timer->expiration_time = trial.now_ms + time; }
unsigned short random_rand(void) { return (unsigned short)trial_draw(); }
uint32_t stack_draw(void) { return trial_draw(); }

void stack_send(void)
{
    if (!is_dropped) {
        trial_datagram();
    }
}

static void finished(void *data, void *response)
{
    EXPECT(data == &transaction);
    state = response != NULL ? ANSWERED : FAILED;
}

static void make(unsigned peer, uint8_t first_byte)
{
    memset(&transaction, 0, sizeof transaction);
    memcpy(&transaction.endpoint.ipaddr.u8[8], &peer, sizeof peer);
    transaction.message[0] = first_byte;
    transaction.callback = finished;
    transaction.callback_data = &transaction;
    state = UNDER_WAY;
}

static bool request(unsigned peer, bool is_adapted)
{
    make(peer, 0x40);
    (is_adapted ? coap_send_transaction : __real_coap_send_transaction)(&transaction);
    while (state == UNDER_WAY) {
        coap_timer_t *timer = &transaction.retrans_timer;
        if (trial.arrival_ms <= timer->expiration_time) {
            /* as coap-engine.c: the transaction is cleared before its callback */
            trial.now_ms = trial.arrival_ms;
            (is_adapted ? coap_clear_transaction : __real_coap_clear_transaction)(&transaction);
            finished(&transaction, &transaction);
        } else {
            trial.now_ms = timer->expiration_time;
            timer->callback(timer);
        }
    }
    return state == ANSWERED;
}

int main(void)
{
    static coap_transaction_t many[3 * COAP_MAX_OPEN_TRANSACTIONS];
    uint64_t due_ms;
    trial_judge("contiki-ng", request, 93000, 25, 6);

    /* A non-confirmable message goes through, and is freed by the stack. */
    make(1, 0x50);
    transaction.retrans_counter = 3;
    coap_send_transaction(&transaction);
    EXPECT(transaction.retrans_counter == 0 && transaction.callback == NULL);

    /* Transactions that were dropped without a word hold no place for ever: their memory comes back with the next. */
    is_dropped = true;
    for (unsigned i = 0; i < 100; i++) {
        memset(&many[0], 0, sizeof many[0]);
        many[0].message[0] = 0x40;
        coap_send_transaction(&many[0]);
    }
    coap_clear_transaction(&many[0]);
    /* More than there are places for get the stack's own timer, and end as before. */
    for (unsigned i = 0; i < 3 * COAP_MAX_OPEN_TRANSACTIONS; i++) {
        many[i].message[0] = 0x40;
        coap_send_transaction(&many[i]);
        due_ms = many[i].retrans_timer.expiration_time;
        EXPECT(due_ms > trial.now_ms && (i < COAP_MAX_OPEN_TRANSACTIONS || due_ms >= trial.now_ms + 3000));
    }
    for (unsigned i = 0; i < 3 * COAP_MAX_OPEN_TRANSACTIONS; i++) {
        coap_clear_transaction(&many[i]);
    }
    is_dropped = false;
    EXPECT(trial_ask(request, 1, true));
    puts("contiki-ng: dropped transactions and too many are right");
    return 0;
}
