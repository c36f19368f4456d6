/* Drives the adapter through a copy of Wakaama's transactions, on a simulated path with loss. The linker wraps their functions. */
#include <string.h>

#include "../common/trial.h"
#include "coapace_wakaama.h"
#include "stack.h"

int __real_transaction_send(lwm2m_context_t *contextP, lwm2m_transaction_t *transacP);
void __real_transaction_step(lwm2m_context_t *contextP, time_t currentTime, time_t *timeoutP);

static lwm2m_context_t context;
static lwm2m_transaction_t transaction;
static enum { UNDER_WAY, ANSWERED, FAILED } state;
static unsigned sessions[1000];

/* The clock wraps soon after the beginning. */
uint32_t coapace_wakaama_clock_ms(void) { return (uint32_t)(trial.now_ms - 100000); }
uint32_t coapace_wakaama_random(void) { return trial_draw(); }
time_t stack_seconds(void) { return (time_t)(trial.now_ms / 1000); }
void stack_send(void) { trial_datagram(); }

static void finished(lwm2m_context_t *in, lwm2m_transaction_t *t, void *message)
{
    EXPECT(in == &context && t == &transaction);
    state = message != NULL ? ANSWERED : FAILED;
}

static void make(unsigned peer)
{
    memset(&transaction, 0, sizeof transaction);
    transaction.mID = (uint16_t)trial.now_ms;
    transaction.peerH = &sessions[peer];
    transaction.callback = finished;
    context.transactionList = &transaction;
    state = UNDER_WAY;
}

/* The loop of a program. As shipped it steps at whole seconds; with the adapter it asks how long it may wait, unless is_coarse. */
static bool is_coarse;

static bool request(unsigned peer, bool is_adapted)
{
    make(peer);
    EXPECT((is_adapted ? transaction_send : __real_transaction_send)(&context, &transaction) == 0);
    while (state == UNDER_WAY) {
        time_t wait = 60;
        uint64_t wake_ms;
        (is_adapted ? transaction_step : __real_transaction_step)(&context, stack_seconds(), &wait);
        EXPECT(wait >= 1);
        if (state != UNDER_WAY) {
            break;
        }
        wake_ms = trial.now_ms + (uint64_t)wait * 1000;
        if (is_adapted && !is_coarse) {
            wake_ms = trial.now_ms + coapace_wakaama_wait(60000);
        }
        if (trial.arrival_ms <= wake_ms) {
            coap_packet_t message = {transaction.mID, false};
            trial.now_ms = trial.arrival_ms;
            EXPECT(transaction_handleResponse(&context, NULL, &message, NULL));
        } else {
            trial.now_ms = wake_ms;
        }
    }
    EXPECT(context.transactionList == NULL);
    return state == ANSWERED;
}

int main(void)
{
    lwm2m_transaction_t many[3 * COAPACE_WAKAAMA_TRANSACTIONS];
    coap_packet_t message = {0, true};
    time_t wait = 60;
    trial_judge("wakaama", request, 62000, 60, 6);
    is_coarse = true;
    trial_judge("wakaama, in whole seconds", request, 62000, 80, 6);
    is_coarse = false;

    /* An empty acknowledgement ends the exchange; the stack's own timer is then in force for the response. */
    make(1);
    EXPECT(transaction_send(&context, &transaction) == 0);
    trial.now_ms += 80;
    message.mid = transaction.mID;
    EXPECT(transaction_handleResponse(&context, NULL, &message, NULL) && state == UNDER_WAY);
    EXPECT(coapace_wakaama_wait(60000) == 60000);
    transaction_step(&context, stack_seconds(), &wait);
    EXPECT(wait >= COAP_SEPARATE_TIMEOUT - 1 && wait <= COAP_SEPARATE_TIMEOUT);
    trial.now_ms += COAP_SEPARATE_TIMEOUT * 1000;
    transaction_step(&context, stack_seconds(), &wait);
    EXPECT(state == FAILED && context.transactionList == NULL);

    /* Transactions that were dropped without a word hold no place; more than there are places for get the stack's own timer. */
    memset(many, 0, sizeof many);
    for (unsigned i = 0; i < 3 * COAPACE_WAKAAMA_TRANSACTIONS; i++) {
        many[i].peerH = &sessions[1];
        many[i].mID = (uint16_t)i;
        EXPECT(transaction_send(&context, &many[i]) == 0);
    }
    transaction_step(&context, stack_seconds(), &wait);
    EXPECT(coapace_wakaama_wait(60000) == 60000);
    EXPECT(trial_ask(request, 1, true));
    puts("wakaama: empty acknowledgements, dropped transactions and too many are right");
    return 0;
}
