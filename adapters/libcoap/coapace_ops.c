/* Connects coapace.c with the functions of congestion-control.patch. coapace_ops.h is the documentation.
 * Licence: MIT OR Apache-2.0. */
#include "coapace_ops.h"

#include <string.h>

static uint64_t us_of(coap_tick_t ticks)
{
    return (uint64_t)ticks * 1000000 / COAP_TICKS_PER_SECOND;
}

/* Rounds up, so that no timeout passes before its time. */
static coap_tick_t ticks_of(uint64_t us)
{
    return (coap_tick_t)((us * COAP_TICKS_PER_SECOND + 999999) / 1000000);
}

/* Returns the time between two moments, or 0 if libcoap's clock, the time of the day, was set back. */
static uint64_t since(coap_tick_t now, coap_tick_t then)
{
    return coap_time_lt(now, then) ? 0 : us_of(now - then);
}

static struct coapace_cue cue_of(struct coapace_ops *peer, const coap_cc_cue_t *cue)
{
    struct coapace_cue made;
    made.now_us = coapace_clock(&peer->clock, (uint32_t)(us_of(cue->now) / 1000));
    made.draw = cue->random;
    made.outstanding = cue->con_active;
    return made;
}

static uint8_t max_retransmit(const coap_cc_cue_t *cue)
{
    return cue->max_retransmit < UINT8_MAX ? (uint8_t)cue->max_retransmit : UINT8_MAX - 1;
}

static void *start(void *arg, const coap_cc_cue_t *cue, coap_tick_t *timeout)
{
    struct coapace_ops *peer = arg;
    struct coapace_cue made = cue_of(peer, cue);
    for (size_t i = 0; i < COAPACE_OPS_SLOTS; i++) {
        struct coapace_ops_slot *slot = &peer->slots[i];
        uint64_t timeout_us;
        if (slot->owner == NULL &&
            coapace_on_start(&peer->mechanism, &peer->state, &slot->exchange, &made, &timeout_us) == COAPACE_OK) {
            slot->owner = peer;
            slot->first = slot->last = cue->now;
            slot->retransmits = 0;
            *timeout = ticks_of(coapace_patient(timeout_us, 0, 0, max_retransmit(cue), peer->is_silent, made.draw));
            return slot;
        }
    }
    return NULL;
}

static coap_cc_action_t expire(void *exchange, const coap_cc_cue_t *cue, coap_tick_t *timeout)
{
    struct coapace_ops_slot *slot = exchange;
    struct coapace_ops *peer = slot->owner;
    struct coapace_cue made = cue_of(peer, cue);
    uint64_t since_first_us = since(cue->now, slot->first), wait_us;
    uint8_t most = max_retransmit(cue);
    peer->is_silent = peer->is_silent || slot->retransmits >= most;
    switch (coapace_on_timeout(since_first_us, slot->retransmits, most, &wait_us)) {
    case COAPACE_GIVE_UP:
        return COAP_CC_GIVE_UP;
    case COAPACE_WAIT:
        *timeout = ticks_of(wait_us);
        return COAP_CC_WAIT;
    default:
        slot->retransmits++;
        slot->last = cue->now;
        (void)coapace_on_retransmit(&peer->mechanism, &peer->state, &slot->exchange, &made, &wait_us);
        *timeout = ticks_of(coapace_patient(wait_us, since_first_us, slot->retransmits, most, peer->is_silent, made.draw));
        return COAP_CC_RETRANSMIT;
    }
}

static void end(void *exchange, const coap_cc_cue_t *cue, coap_cc_end_t how)
{
    struct coapace_ops_slot *slot = exchange;
    struct coapace_ops *peer = slot->owner;
    struct coapace_cue made = cue_of(peer, cue);
    struct coapace_outcome outcome = {{0, 0, 0, 0, 0, 0}, COAPACE_CANCELLED};
    struct coapace_gauges gauges = {0, 0, 0, 0, 0, 0, 0};
    outcome.sample.since_first_us = since(cue->now, slot->first);
    outcome.sample.since_last_us = since(cue->now, slot->last);
    outcome.sample.retransmits = slot->retransmits;
    /* An answer that follows a copy sooner than any answer before counts for the first transmission with ebb. But a little sooner
     * is jitter, or rounding to ticks. */
    (void)coapace_gauges(&peer->mechanism, &peer->state, &gauges);
    if (slot->retransmits > 0 && outcome.sample.since_last_us >= peer->least_us / 2 && outcome.sample.since_last_us < gauges.srtt_us) {
        outcome.sample.since_last_us = gauges.srtt_us;
    }
    if (how == COAP_CC_ACKED && !coap_time_lt(cue->now, slot->last) && !coap_time_lt(slot->last, slot->first)) {
        outcome.end = COAPACE_ACKED;
        if (slot->retransmits == 0 && (peer->least_us == 0 || outcome.sample.since_first_us < peer->least_us)) {
            peer->least_us = (uint32_t)outcome.sample.since_first_us;
        }
    } else if (how == COAP_CC_RESET) {
        outcome.end = COAPACE_RESET;
    } else if (how == COAP_CC_GIVEN_UP) {
        outcome.end = COAPACE_GIVEN_UP;
    }
    if (how == COAP_CC_ACKED || how == COAP_CC_RESET) {
        peer->is_silent = false;
    }
    (void)coapace_on_end(&peer->mechanism, &peer->state, &slot->exchange, &outcome, &made);
    slot->owner = NULL;
}

int coapace_ops_attach(struct coapace_ops *peer, coap_session_t *session, const struct coapace_mechanism *mechanism)
{
    static const coap_cc_ops_t OPS = {start, expire, end};
    int status;
    if (peer == NULL || session == NULL || mechanism == NULL) {
        return COAPACE_NULL_POINTER;
    }
    memset(peer, 0, sizeof *peer);
    peer->mechanism = *mechanism;
    status = coapace_state_init(mechanism, &peer->state, sizeof peer->state);
    if (status == COAPACE_OK) {
        coap_session_set_cc(session, &OPS, peer);
    }
    return status;
}
