/* coapace_riot.h is the documentation. Licence: MIT OR Apache-2.0. */
#include "coapace_riot.h"

#include <string.h>

#include "mutex.h"
#include "net/coap.h"
#include "random.h"
#include "ztimer.h"

#if COAPACE_WITH_EBB
#define MECHANISM COAPACE_EBB_PLAIN
#elif COAPACE_WITH_COCOA
#define MECHANISM COAPACE_COCOA
#elif COAPACE_WITH_FASOR
#define MECHANISM COAPACE_FASOR
#elif COAPACE_WITH_LINUX_RTO
#define MECHANISM COAPACE_LINUX_RTO
#else
#define MECHANISM COAPACE_DEFAULT
#endif

static const struct coapace_stock stock = {.patience_ms = UINT32_C(1) * CONFIG_COAP_ACK_TIMEOUT_MS * ((2u << CONFIG_COAP_MAX_RETRANSMIT) - 1),
                                           .max_retransmit = CONFIG_COAP_MAX_RETRANSMIT};

/* Requests come from any thread, timeouts and answers from that of the stack. */
static mutex_t lock = MUTEX_INIT;
static struct coapace_peer table[CONFIG_COAPACE_PEERS];
static struct coapace_peers peers;
static struct coapace_clock clock_ms;

/* An exchange under way. */
static struct record {
    const void *exchange; /* null: free */
    struct coapace_flight flight;
} records[CONFIG_COAPACE_EXCHANGES];

static uint64_t now_us(void)
{
    return coapace_clock(&clock_ms, ztimer_now(ZTIMER_MSEC));
}

static uint32_t draw(void)
{
    return random_uint32();
}

/* Returns the record of an exchange, or a free one for null, or null if there is none. */
static struct record *find(const void *exchange)
{
    for (size_t i = 0; i < CONFIG_COAPACE_EXCHANGES; i++) {
        if (records[i].exchange == exchange) {
            return &records[i];
        }
    }
    return NULL;
}

uint32_t coapace_riot_depart(const void *exchange, const sock_udp_ep_t *remote, uint32_t stock_ms)
{
    unsigned char key[sizeof remote->addr + sizeof remote->port];
    size_t size = remote->family == AF_INET6 ? sizeof remote->addr : 4;
    struct record *record;
    uint32_t timeout_ms = 0;
    memcpy(key, &remote->addr, size);
    memcpy(key + size, &remote->port, sizeof remote->port);
    mutex_lock(&lock);
    if (peers.draw == NULL) {
        (void)coapace_peers_init(&peers, table, CONFIG_COAPACE_PEERS, MECHANISM, &stock, draw);
    }
    /* The stack may have dropped an exchange without a word, and now uses its memory again. */
    record = find(exchange);
    record = record != NULL ? record : find(NULL);
    if (record != NULL) {
        timeout_ms = coapace_peers_depart(&peers, &record->flight, key, size + sizeof remote->port, now_us());
        record->exchange = timeout_ms > 0 ? exchange : NULL;
    }
    mutex_unlock(&lock);
    return timeout_ms > 0 ? timeout_ms : stock_ms;
}

int coapace_riot_expire(const void *exchange, uint32_t *wait_ms)
{
    struct record *record;
    int action = COAPACE_RIOT_NONE;
    mutex_lock(&lock);
    record = find(exchange);
    if (record != NULL) {
        action = (int)coapace_peers_expire(&peers, &record->flight, now_us(), wait_ms);
        record->exchange = action == COAPACE_GIVE_UP ? NULL : exchange;
    }
    mutex_unlock(&lock);
    return action;
}

void coapace_riot_end(const void *exchange, uint8_t end)
{
    struct record *record;
    mutex_lock(&lock);
    record = find(exchange);
    if (record != NULL) {
        coapace_peers_end(&peers, &record->flight, end, now_us());
        record->exchange = NULL;
    }
    mutex_unlock(&lock);
}
