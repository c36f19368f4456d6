/* coapace_zephyr.h is the documentation. Licence: MIT OR Apache-2.0. */
#include "coapace_zephyr.h"

#include <errno.h>
#include <string.h>

#include <zephyr/random/random.h>

#if defined CONFIG_COAPACE_COCOA
#define MECHANISM COAPACE_COCOA
#elif defined CONFIG_COAPACE_FASOR
#define MECHANISM COAPACE_FASOR
#elif defined CONFIG_COAPACE_LINUX_RTO
#define MECHANISM COAPACE_LINUX_RTO
#else
#define MECHANISM COAPACE_EBB_PLAIN
#endif

#ifdef CONFIG_COAP_RANDOMIZE_ACK_TIMEOUT
/* Zephyr draws the first timeout up to so much longer, and divides by that difference in ms, which must not be 0. */
#define RANDOM_PERCENT 110
#define LEAST_TIMEOUT_MS 20
#else
#define RANDOM_PERCENT 100
#define LEAST_TIMEOUT_MS 1
#endif

/* Options of a request that is answered more than once. */
#define OBSERVE 6

static K_MUTEX_DEFINE(lock);
static struct coapace_peer table[CONFIG_COAPACE_PEERS];
static struct coapace_peers peers;

static uint64_t now_us(void)
{
    return (uint64_t)k_uptime_get() * 1000;
}

static uint32_t draw(void)
{
    return sys_rand32_get();
}

/* Called with the lock held. */
static void prepare(void)
{
    if (peers.draw == NULL) {
        struct coap_transmission_parameters own = coap_get_transmission_parameters();
        struct coapace_stock stock = {.max_retransmit = own.max_retransmission,
                                      .most_retransmit = UINT8_MAX,
                                      .least_factor = 1000,
                                      .most_factor = UINT16_MAX / 100 * 100,
                                      .dither = 10 * RANDOM_PERCENT,
                                      .least_timeout_ms = LEAST_TIMEOUT_MS};
        uint64_t timeout_ms = own.ack_timeout, span_ms = 0;
        for (unsigned n = 0; n < own.max_retransmission && span_ms < UINT32_MAX / 2; n++) {
            span_ms += timeout_ms;
            timeout_ms = timeout_ms * own.coap_backoff_percent / 100;
        }
        stock.span_ms = (uint32_t)span_ms;
        stock.patience_ms = (uint32_t)(span_ms + timeout_ms);
        (void)coapace_peers_init(&peers, table, CONFIG_COAPACE_PEERS, MECHANISM, &stock, draw);
    }
}

/* Family, port and address of IPv6 are the first 20 bytes of an address, those of IPv4 the first 8. */
static size_t key_size(const coapace_sockaddr *addr)
{
#if ZEPHYR_VERSION_CODE < ZEPHYR_VERSION(4, 4, 0)
    return addr->sa_family == AF_INET6 ? 20 : 8;
#else
    return addr->sa_family == NET_AF_INET6 ? 20 : 8;
#endif
}

static bool advise(struct coapace_flight *flight, const void *key, size_t size, struct coap_transmission_parameters *params)
{
    struct coapace_parameters advised;
    prepare();
    *params = coap_get_transmission_parameters();
    if (!coapace_peers_advise(&peers, flight, key, size, now_us(), &advised)) {
        return false;
    }
    params->ack_timeout = advised.ack_timeout_ms;
#ifdef CONFIG_COAP_RANDOMIZE_ACK_TIMEOUT
    params->ack_random_percent = RANDOM_PERCENT;
#endif
    params->coap_backoff_percent = (uint16_t)(advised.backoff_factor / 10);
    params->max_retransmission = advised.max_retransmit;
    return true;
}

int coapace_pending_init(struct coapace_flight *flight, struct coap_pending *pending, const struct coap_packet *request,
                         const coapace_sockaddr *addr)
{
    struct coap_transmission_parameters params;
    int result;
    k_mutex_lock(&lock, K_FOREVER);
    (void)advise(flight, addr, key_size(addr), &params);
    result = coap_pending_init(pending, request, addr, &params);
    if (result < 0) {
        coapace_peers_end(&peers, flight, COAPACE_CANCELLED, now_us());
    }
    k_mutex_unlock(&lock);
    return result;
}

void coapace_pending_end(struct coapace_flight *flight, const struct coap_pending *pending, enum coapace_end end)
{
    k_mutex_lock(&lock, K_FOREVER);
    /* An empty acknowledgement may have moved t0: then there is no telling when the last copy departed. */
    if (pending->retries <= pending->params.max_retransmission && end == COAPACE_ACKED) {
        uint8_t copies = (uint8_t)(pending->params.max_retransmission - pending->retries);
        coapace_peers_copies(&peers, flight, copies, (uint64_t)pending->t0 * 1000);
    }
    coapace_peers_end(&peers, flight, (uint8_t)end, now_us());
    k_mutex_unlock(&lock);
}

#ifdef CONFIG_COAP_CLIENT

#ifdef CONFIG_COAPACE_EVERY_REQUEST
/* The names that the linker's --wrap gives the stack's function, and the one in its place. */
int __real_coap_client_req(struct coap_client *client, int sock, const coapace_sockaddr *addr, struct coap_client_request *req,
                           struct coap_transmission_parameters *params);
void __real_coap_client_cancel_requests(struct coap_client *client);
int __wrap_coap_client_req(struct coap_client *client, int sock, const coapace_sockaddr *addr, struct coap_client_request *req,
                           struct coap_transmission_parameters *params);
void __wrap_coap_client_cancel_requests(struct coap_client *client);
#define stack_req __real_coap_client_req
#define stack_cancel __real_coap_client_cancel_requests
#else
#define stack_req coap_client_req
#define stack_cancel coap_client_cancel_requests
#endif

/* A request under way. */
static struct slot {
    struct coap_client *client; /* null: free */
    coap_client_response_cb_t cb;
    void *user_data;
    uint32_t serial; /* counts the requests in this place */
    bool is_observe;
    struct coapace_flight flight;
} slots[CONFIG_COAPACE_REQUESTS];

/* An answer or an error has come for a request. Returns its destination, which keeps its place in the table until `proceed`. */
static struct coapace_peer *arrive(struct slot *slot, int16_t code)
{
    uint8_t end = code == -ETIMEDOUT ? COAPACE_GIVEN_UP : code < 0 ? COAPACE_CANCELLED : COAPACE_ACKED;
    struct coapace_peer *peer;
    k_mutex_lock(&lock, K_FOREVER);
    peer = slot->flight.peer;
    coapace_peers_end(&peers, &slot->flight, end, now_us());
    if (peer != NULL) {
        peer->outstanding++;
    }
    k_mutex_unlock(&lock);
    return peer;
}

/* The program's callback has returned. The stack now asks for the next block, or has done with the request. */
static void proceed(struct slot *slot, uint32_t serial, struct coapace_peer *peer, int16_t code, bool is_last)
{
    k_mutex_lock(&lock, K_FOREVER);
    if (peer != NULL) {
        peer->outstanding--;
    }
    if (slot->client == NULL || slot->serial != serial) {
        /* the callback has cancelled it, and another request may have its place */
    } else if (code >= 0 && !is_last && peer != NULL) {
        coapace_peers_continue(&peers, &slot->flight, peer, now_us());
    } else if (code < 0 || !slot->is_observe) {
        slot->client = NULL;
    }
    k_mutex_unlock(&lock);
}

#if ZEPHYR_VERSION_CODE < ZEPHYR_VERSION(4, 3, 0)
static void respond(int16_t code, size_t offset, const uint8_t *payload, size_t len, bool last_block, void *user_data)
{
    struct slot *slot = user_data;
    uint32_t serial = slot->serial;
    struct coapace_peer *peer = arrive(slot, code);
    if (slot->cb != NULL) {
        slot->cb(code, offset, payload, len, last_block, slot->user_data);
    }
    proceed(slot, serial, peer, code, last_block);
}
#else
static void respond(const struct coap_client_response_data *data, void *user_data)
{
    struct slot *slot = user_data;
    uint32_t serial = slot->serial;
    struct coapace_peer *peer = arrive(slot, data->result_code);
    if (slot->cb != NULL) {
        slot->cb(data, slot->user_data);
    }
    proceed(slot, serial, peer, data->result_code, data->last_block);
}
#endif

/* Takes a place for a request and starts its exchange, or returns null. */
static struct slot *take(struct coap_client *client, int sock, const coapace_sockaddr *addr, const struct coap_client_request *req,
                         struct coap_transmission_parameters *params)
{
    struct slot *slot = NULL;
    unsigned char connected[sizeof client + sizeof sock];
    k_mutex_lock(&lock, K_FOREVER);
    for (size_t i = 0; i < CONFIG_COAPACE_REQUESTS && slot == NULL; i++) {
        slot = slots[i].client == NULL ? &slots[i] : NULL;
    }
    /* A connected socket is a destination of its own. */
    memcpy(connected, &client, sizeof client);
    memcpy(connected + sizeof client, &sock, sizeof sock);
    if (slot != NULL && advise(&slot->flight, addr != NULL ? (const void *)addr : connected,
                               addr != NULL ? key_size(addr) : sizeof connected, params)) {
        slot->client = client;
        slot->serial++;
        slot->cb = req->cb;
        slot->user_data = req->user_data;
        slot->is_observe = false;
        for (uint8_t i = 0; i < req->num_options; i++) {
            slot->is_observe = slot->is_observe || req->options[i].code == OBSERVE;
        }
    } else {
        slot = NULL;
    }
    k_mutex_unlock(&lock);
    return slot;
}

int coapace_client_req(struct coap_client *client, int sock, const coapace_sockaddr *addr, struct coap_client_request *req,
                       struct coap_transmission_parameters *params)
{
    struct coap_transmission_parameters advised;
    struct coap_client_request timed;
    struct slot *slot = NULL;
    int result;
    if (client != NULL && req != NULL && req->confirmable && params == NULL) {
        slot = take(client, sock, addr, req, &advised);
    }
    if (slot == NULL) {
        return stack_req(client, sock, addr, req, params);
    }
    timed = *req;
    timed.cb = respond;
    timed.user_data = slot;
    result = stack_req(client, sock, addr, &timed, &advised);
    if (result < 0) {
        k_mutex_lock(&lock, K_FOREVER);
        coapace_peers_end(&peers, &slot->flight, COAPACE_CANCELLED, now_us());
        slot->client = NULL;
        k_mutex_unlock(&lock);
    }
    return result;
}

void coapace_client_cancel_requests(struct coap_client *client)
{
    stack_cancel(client);
    k_mutex_lock(&lock, K_FOREVER);
    for (size_t i = 0; i < CONFIG_COAPACE_REQUESTS; i++) {
        if (slots[i].client == client) {
            coapace_peers_end(&peers, &slots[i].flight, COAPACE_CANCELLED, now_us());
            slots[i].client = NULL;
        }
    }
    k_mutex_unlock(&lock);
}

#ifdef CONFIG_COAPACE_EVERY_REQUEST
int __wrap_coap_client_req(struct coap_client *client, int sock, const coapace_sockaddr *addr, struct coap_client_request *req,
                           struct coap_transmission_parameters *params)
{
    return coapace_client_req(client, sock, addr, req, params);
}

void __wrap_coap_client_cancel_requests(struct coap_client *client)
{
    coapace_client_cancel_requests(client);
}
#endif
#endif
