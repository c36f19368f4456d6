/* coapace_peers.h is the documentation. Licence: MIT OR Apache-2.0. */
#include "coapace_peers.h"

#include <string.h>

/* The least times of RFC 7252 with MAX_RETRANSMIT = 4 (section 4.8): to the last copy, and to the end. */
#define LEAST_SPAN_MS 30000
#define LEAST_PATIENCE_MS 62000

static uint32_t milliseconds(uint64_t span_us)
{
    return span_us < UINT64_C(1000) * UINT32_MAX ? (uint32_t)((span_us + 999) / 1000) : UINT32_MAX;
}

static struct coapace_cue cue(const struct coapace_peers *peers, const struct coapace_flight *flight, uint64_t now_us)
{
    struct coapace_cue made = {now_us, peers->draw(), flight->peer->outstanding};
    return made;
}

int coapace_peers_init(struct coapace_peers *peers, struct coapace_peer *table, size_t count, int mechanism,
                       const struct coapace_stock *stock, uint32_t (*draw)(void))
{
    int status = coapace_init(&peers->mechanism, mechanism);
    peers->stock = *stock;
    peers->stock.patience_ms = stock->patience_ms > LEAST_PATIENCE_MS ? stock->patience_ms : LEAST_PATIENCE_MS;
    peers->stock.span_ms = stock->span_ms > LEAST_SPAN_MS ? stock->span_ms : LEAST_SPAN_MS;
    peers->table = table;
    peers->count = status == COAPACE_OK ? count : 0;
    peers->uses = 0;
    peers->draw = draw;
    memset(table, 0, count * sizeof *table);
    if (status == COAPACE_OK && coapace_state_size(&peers->mechanism) > COAPACE_PEER_STATE_SIZE) {
        status = COAPACE_TOO_SMALL;
        peers->count = 0;
    }
    return status;
}

/* Returns the destination with this key. A new one takes the place that was used longest ago, unless all have exchanges under way. */
static struct coapace_peer *find(struct coapace_peers *peers, const void *key, size_t key_size)
{
    struct coapace_peer *found = NULL;
    for (size_t i = 0; i < peers->count; i++) {
        struct coapace_peer *peer = &peers->table[i];
        if (peer->key_size == key_size && memcmp(peer->key, key, key_size) == 0) {
            return peer;
        }
        if (peer->outstanding == 0 &&
            (found == NULL || (uint32_t)(peers->uses - peer->used) > (uint32_t)(peers->uses - found->used))) {
            found = peer;
        }
    }
    if (found != NULL) {
        memset(found, 0, sizeof *found);
        memcpy(found->key, key, key_size);
        found->key_size = (uint8_t)key_size;
        (void)coapace_state_init(&peers->mechanism, &found->state, sizeof found->state);
    }
    return found;
}

static void take_off(struct coapace_peers *peers, struct coapace_flight *flight, struct coapace_peer *peer, uint64_t now_us)
{
    peer->used = ++peers->uses;
    peer->outstanding = (uint16_t)(peer->outstanding + (peer->outstanding < UINT16_MAX ? 1 : 0));
    flight->peer = peer;
    flight->first_us = now_us;
    flight->last_us = now_us;
    flight->retransmits = 0;
}

static bool begin(struct coapace_peers *peers, struct coapace_flight *flight, const void *key, size_t key_size, uint64_t now_us)
{
    struct coapace_peer *peer = NULL;
    coapace_peers_end(peers, flight, COAPACE_CANCELLED, now_us); /* one that the stack dropped without a word */
    if (key_size > 0 && key_size <= COAPACE_PEER_KEY_SIZE) {
        peer = find(peers, key, key_size);
    }
    if (peer != NULL) {
        take_off(peers, flight, peer, now_us);
    }
    return peer != NULL;
}

uint32_t coapace_peers_depart(struct coapace_peers *peers, struct coapace_flight *flight, const void *key, size_t key_size,
                              uint64_t now_us)
{
    uint64_t timeout_us = 0;
    struct coapace_cue told;
    if (!begin(peers, flight, key, key_size, now_us)) {
        return 0;
    }
    told = cue(peers, flight, now_us);
    flight->parameters.max_retransmit = 0;
    (void)coapace_on_start(&peers->mechanism, &flight->peer->state, &flight->exchange, &told, &timeout_us);
    return milliseconds(coapace_patient(timeout_us, 0, 0, peers->stock.max_retransmit, flight->peer->is_silent, told.draw));
}

enum coapace_action coapace_peers_expire(struct coapace_peers *peers, struct coapace_flight *flight, uint64_t now_us, uint32_t *wait_ms)
{
    uint64_t since_us = now_us - flight->first_us, wait_us = 0, patience_us = UINT64_C(1000) * peers->stock.patience_ms;
    uint8_t most = peers->stock.max_retransmit;
    enum coapace_action action = coapace_on_timeout(since_us, flight->retransmits, most, &wait_us);
    flight->peer->is_silent = flight->peer->is_silent || flight->retransmits >= most;
    if (action == COAPACE_GIVE_UP && since_us < patience_us) {
        action = COAPACE_WAIT;
        wait_us = patience_us - since_us;
    } else if (action == COAPACE_GIVE_UP) {
        coapace_peers_end(peers, flight, COAPACE_GIVEN_UP, now_us);
    } else if (action == COAPACE_RETRANSMIT) {
        struct coapace_cue told = cue(peers, flight, now_us);
        flight->retransmits = (uint8_t)(flight->retransmits + (flight->retransmits < UINT8_MAX ? 1 : 0));
        flight->last_us = now_us;
        (void)coapace_on_retransmit(&peers->mechanism, &flight->peer->state, &flight->exchange, &told, &wait_us);
        wait_us = coapace_patient(wait_us, since_us, flight->retransmits, most, flight->peer->is_silent, told.draw);
    }
    *wait_ms = milliseconds(wait_us);
    return action;
}

/* Returns whether these numbers send the last copy, and give up, no sooner than the stack does by itself. */
static bool lasts(const struct coapace_parameters *parameters, const struct coapace_stock *stock)
{
    uint64_t timeout_ms = parameters->ack_timeout_ms, span_ms = 0;
    for (unsigned n = 0; n < parameters->max_retransmit && span_ms < stock->patience_ms; n++) {
        span_ms += timeout_ms;
        timeout_ms = timeout_ms * parameters->backoff_factor / 1000;
    }
    return span_ms >= stock->span_ms && span_ms + timeout_ms >= stock->patience_ms;
}

bool coapace_peers_advise(struct coapace_peers *peers, struct coapace_flight *flight, const void *key, size_t key_size,
                          uint64_t now_us, struct coapace_parameters *parameters)
{
    const struct coapace_stock *stock = &peers->stock;
    struct coapace_cue told;
    uint32_t timeout_ms;
    if (!begin(peers, flight, key, key_size, now_us)) {
        return false;
    }
    told = cue(peers, flight, now_us);
    parameters->backoff_factor = stock->least_factor == stock->most_factor ? stock->least_factor : 0;
    (void)coapace_parameters(&peers->mechanism, &flight->peer->state, &flight->exchange, &told, parameters);
    timeout_ms = flight->peer->is_silent ? coapace_rfc7252_timeout(0, told.draw) / 1000 : stock->least_timeout_ms;
    timeout_ms = timeout_ms > stock->least_timeout_ms ? timeout_ms : stock->least_timeout_ms;
    parameters->ack_timeout_ms = parameters->ack_timeout_ms > timeout_ms ? parameters->ack_timeout_ms : timeout_ms;
    parameters->ack_timeout_ms = parameters->ack_timeout_ms > 0 ? parameters->ack_timeout_ms : 1;
    parameters->max_retransmit = stock->max_retransmit;
    parameters->backoff_factor = (uint16_t)((parameters->backoff_factor + 9) / 10 * 10); /* Zephyr counts per cent */
    if (parameters->backoff_factor > stock->most_factor) {
        parameters->backoff_factor = stock->most_factor;
    } else if (parameters->backoff_factor < stock->least_factor) {
        parameters->backoff_factor = stock->least_factor;
    }
    /* Short timeouts are stretched by one more copy and a larger factor; where the factor ends, by more copies. */
    while (!lasts(parameters, stock)) {
        if (parameters->max_retransmit < stock->most_retransmit &&
            (parameters->max_retransmit <= stock->max_retransmit || parameters->backoff_factor + 100 > stock->most_factor)) {
            parameters->max_retransmit++;
        } else if (parameters->backoff_factor + 100 <= stock->most_factor) {
            parameters->backoff_factor = (uint16_t)(parameters->backoff_factor + 100);
        } else {
            parameters->ack_timeout_ms *= 2; /* a stack that takes neither */
        }
    }
    /* If the stack draws its timeout by itself, the longest draw counts as armed: a copy may be overlooked, but none is made up. */
    flight->parameters = *parameters;
    flight->parameters.ack_timeout_ms = (uint32_t)((uint64_t)parameters->ack_timeout_ms * stock->dither / 1000);
    return true;
}

void coapace_peers_copies(struct coapace_peers *peers, struct coapace_flight *flight, uint8_t copies, uint64_t last_us)
{
    for (; flight->peer != NULL && flight->retransmits < copies; flight->retransmits++) {
        uint64_t timeout_us;
        struct coapace_cue told = cue(peers, flight, last_us);
        (void)coapace_on_retransmit(&peers->mechanism, &flight->peer->state, &flight->exchange, &told, &timeout_us);
        flight->last_us = last_us;
    }
    flight->parameters.max_retransmit = 0; /* no more is to be guessed */
}

void coapace_peers_continue(struct coapace_peers *peers, struct coapace_flight *flight, struct coapace_peer *peer, uint64_t now_us)
{
    uint64_t timeout_us;
    struct coapace_cue told;
    take_off(peers, flight, peer, now_us);
    told = cue(peers, flight, now_us);
    (void)coapace_on_start(&peers->mechanism, &peer->state, &flight->exchange, &told, &timeout_us);
}

void coapace_peers_end(struct coapace_peers *peers, struct coapace_flight *flight, uint8_t end, uint64_t now_us)
{
    struct coapace_peer *peer = flight->peer;
    struct coapace_cue told;
    if (peer == NULL) {
        return;
    }
    told = cue(peers, flight, now_us);
    if (flight->parameters.max_retransmit > 0) {
        (void)coapace_observed(&peers->mechanism, &peer->state, &flight->exchange, &flight->parameters, now_us - flight->first_us, end,
                               &told);
    } else {
        struct coapace_outcome outcome = {{now_us - flight->first_us, now_us - flight->last_us, 0, flight->retransmits, 0, 0}, end};
        (void)coapace_on_end(&peers->mechanism, &peer->state, &flight->exchange, &outcome, &told);
    }
    /* What the peer answered ends its silence. */
    peer->is_silent = end == COAPACE_GIVEN_UP || (peer->is_silent && end != COAPACE_ACKED && end != COAPACE_RESET);
    peer->outstanding = (uint16_t)(peer->outstanding - (peer->outstanding > 0 ? 1 : 0));
    flight->peer = NULL;
}
