/* Drives the adapter through a copy of gcoap's timer with the lines of gcoap.patch, on a simulated path with loss. */
#include <string.h>

#include "../common/trial.h"
#include "coapace_riot.h"
#include "mutex.h"
#include "net/coap.h"
#include "random.h"
#include "ztimer.h"

void mutex_lock(mutex_t *mutex) { EXPECT(mutex->locked++ == 0); }
void mutex_unlock(mutex_t *mutex) { EXPECT(--mutex->locked == 0); }
uint32_t random_uint32(void) { return trial_draw(); }
uint32_t ztimer_now(void *clock)
{
    (void)clock;
    return (uint32_t)(trial.now_ms - 100000); /* it wraps soon after the beginning */
}

/* A request of gcoap. */
static struct {
    int send_limit;
    bool waits_for_response;
    uint64_t due_ms;
} memo;
static bool is_patched;

/* As gcoap: a fresh draw at every retransmission. */
static uint32_t stock_timeout(unsigned i)
{
    uint32_t least_ms = (uint32_t)CONFIG_COAP_ACK_TIMEOUT_MS << i;
    return least_ms + trial_draw() % (least_ms / 2);
}

/* _on_resp_timeout; returns false as the request expires */
static bool on_timeout(void)
{
    uint32_t wait_ms = 0, timeout_ms;
    int action = is_patched ? coapace_riot_expire(&memo, &wait_ms) : COAPACE_RIOT_NONE;
    if (action == COAPACE_WAIT) {
        memo.due_ms = trial.now_ms + wait_ms;
        return true;
    }
    if (action != COAPACE_RIOT_NONE) {
        memo.send_limit = action == COAPACE_RETRANSMIT;
    }
    if (memo.send_limit == 0) {
        coapace_riot_end(&memo, COAPACE_CANCELLED);
        return false;
    }
    memo.send_limit--;
    timeout_ms = stock_timeout((unsigned)(CONFIG_COAP_MAX_RETRANSMIT - memo.send_limit));
    memo.due_ms = trial.now_ms + (action == COAPACE_RETRANSMIT ? wait_ms : timeout_ms);
    if (!memo.waits_for_response) {
        trial_datagram();
    }
    return true;
}

static void send(unsigned peer)
{
    sock_udp_ep_t remote = {AF_INET6, {{0xfd}}, 0, 5683};
    uint32_t timeout_ms = stock_timeout(0);
    memcpy(&remote.addr.ipv6[8], &peer, sizeof peer);
    if (is_patched) {
        timeout_ms = coapace_riot_depart(&memo, &remote, timeout_ms);
    }
    memo.send_limit = CONFIG_COAP_MAX_RETRANSMIT;
    memo.waits_for_response = false;
    memo.due_ms = trial.now_ms + timeout_ms;
    trial_datagram();
}

static bool request(unsigned peer, bool is_adapted)
{
    is_patched = is_adapted;
    send(peer);
    while (trial.arrival_ms > memo.due_ms) {
        trial.now_ms = memo.due_ms;
        if (!on_timeout()) {
            return false;
        }
    }
    trial.now_ms = trial.arrival_ms;
    if (is_patched) {
        coapace_riot_end(&memo, COAPACE_ACKED);
    }
    return true;
}

int main(void)
{
    static char others[3 * CONFIG_COAPACE_EXCHANGES];
    sock_udp_ep_t remote = {AF_INET, {{192, 0, 2, 1}}, 0, 5683};
    uint64_t begun_ms;
    trial_judge("riot, gcoap", request, 62000, 60, 6);

    /* After an empty acknowledgement, gcoap waits for the response as long as by itself. */
    EXPECT(trial_ask(request, 1, true));
    begun_ms = trial.now_ms;
    trial.arrival_ms = TRIAL_NEVER;
    send(1);
    EXPECT(memo.due_ms < trial.now_ms + 1000);
    trial.now_ms += 80;
    coapace_riot_end(&memo, COAPACE_ACKED);
    memo.send_limit = CONFIG_COAP_MAX_RETRANSMIT + 1;
    memo.waits_for_response = true;
    do {
        trial.now_ms = memo.due_ms;
    } while (on_timeout());
    EXPECT(trial.now_ms >= begun_ms + 62000);

    /* Exchanges that were dropped without a word come back with their memory; more than there are places for keep their timeouts. */
    for (unsigned i = 0; i < 100; i++) {
        EXPECT(coapace_riot_depart(&others[0], &remote, 12345) != 12345);
    }
    for (unsigned i = 0; i < 3 * CONFIG_COAPACE_EXCHANGES; i++) {
        uint32_t timeout_ms = coapace_riot_depart(&others[i], &remote, 12345);
        EXPECT((timeout_ms != 12345) == (i < CONFIG_COAPACE_EXCHANGES));
    }
    EXPECT(coapace_riot_expire(&others[3 * CONFIG_COAPACE_EXCHANGES - 1], &(uint32_t){0}) == COAPACE_RIOT_NONE);
    for (unsigned i = 0; i < 3 * CONFIG_COAPACE_EXCHANGES; i++) {
        coapace_riot_end(&others[i], COAPACE_ACKED);
    }
    EXPECT(trial_ask(request, 1, true));
    puts("riot: empty acknowledgements, dropped exchanges and too many are right");
    return 0;
}
