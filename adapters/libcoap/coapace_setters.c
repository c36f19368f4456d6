/* Sets the timeouts of libcoap's sessions by coapace.c. coapace_setters.h is the documentation. Licence: MIT OR Apache-2.0. */
#include "coapace_setters.h"

#include <string.h>

/* libcoap takes no ACK_TIMEOUT below 1 s. A peer that let a request fail gets 3 s, so that no more datagrams reach it than with
 * RFC 7252. A quarter of a second, by random, keeps clients apart. */
enum { LEAST_MS = 1000, SILENT_MS = 3000, DITHER_MS = 250 };
/* MAX_TRANSMIT_WAIT of RFC 7252: no request fails sooner than with libcoap's own numbers. */
enum { PATIENCE_MS = 93000 };
/* EXCHANGE_LIFETIME of RFC 7252: a request that was acknowledged but never answered is forgotten after that. */
enum { LIFETIME_S = 247 };

static struct coapace_cue cue_of(struct coapace_setters *peer)
{
    struct coapace_cue cue = {0, 0, 1};
    coap_tick_t now;
    coap_ticks(&now);
    cue.now_us = coapace_clock(&peer->clock, (uint32_t)((uint64_t)now * 1000 / COAP_TICKS_PER_SECOND));
    (void)coap_prng(&cue.draw, sizeof cue.draw);
    return cue;
}

static void end(struct coapace_setters *peer, uint8_t how)
{
    struct coapace_cue cue = cue_of(peer);
    struct coapace_gauges gauges = {0, 0, 0, 0, 0, 0, 0};
    uint64_t elapsed_us = 0, since_last_us;
    coap_tick_t now;
    coap_ticks(&now);
    if (!coap_time_lt(now, peer->departed)) {
        elapsed_us = (uint64_t)(now - peer->departed) * 1000000 / COAP_TICKS_PER_SECOND;
    } else if (how == COAPACE_ACKED) {
        how = COAPACE_CANCELLED; /* libcoap's clock, the time of the day, was set back */
    }
    /* The time alone would count a copy that libcoap has not sent, for it was not called in time, or had an acknowledgement. */
    if (how != COAPACE_GIVEN_UP && peer->retransmits < peer->parameters.max_retransmit) {
        peer->parameters.max_retransmit = peer->retransmits;
    }
    /* An answer that follows a copy sooner than any answer before counts for the first transmission with ebb. But a little sooner
     * is jitter, or rounding to ticks. */
    (void)coapace_gauges(&peer->mechanism, &peer->state, &gauges);
    since_last_us = elapsed_us - UINT64_C(1000) * peer->parameters.ack_timeout_ms; /* if there was one copy */
    if (peer->retransmits == 1 && since_last_us >= peer->least_us / 2 && since_last_us < gauges.srtt_us) {
        elapsed_us += gauges.srtt_us - since_last_us;
    }
    if (how == COAPACE_ACKED && peer->retransmits == 0 && (peer->least_us == 0 || elapsed_us < peer->least_us)) {
        peer->least_us = (uint32_t)elapsed_us;
    }
    (void)coapace_observed(&peer->mechanism, &peer->state, &peer->exchange, &peer->parameters, elapsed_us, how, &cue);
    peer->mid = COAP_INVALID_MID;
}

int coapace_setters_init(struct coapace_setters *peer, const struct coapace_mechanism *mechanism)
{
    if (peer == NULL || mechanism == NULL) {
        return COAPACE_NULL_POINTER;
    }
    memset(peer, 0, sizeof *peer);
    peer->mid = COAP_INVALID_MID;
    peer->mechanism = *mechanism;
    return coapace_state_init(mechanism, &peer->state, sizeof peer->state);
}

/* Writes the numbers for a request that departs now to its session. */
static void set(struct coapace_setters *peer, coap_session_t *session)
{
    struct coapace_cue cue = cue_of(peer);
    struct coapace_parameters *parameters = &peer->parameters;
    uint32_t least_ms = (peer->is_silent ? SILENT_MS : LEAST_MS) + (uint32_t)((uint64_t)DITHER_MS * cue.draw >> 32);
    uint32_t steps, total_ms;
    coap_fixed_point_t seconds, one = {1, 0};
    parameters->backoff_factor = 2000; /* libcoap's, which is fixed */
    (void)coapace_parameters(&peer->mechanism, &peer->state, &peer->exchange, &cue, parameters);
    if (parameters->ack_timeout_ms < least_ms) {
        parameters->ack_timeout_ms = least_ms;
    }
    seconds.integer_part = (uint16_t)(parameters->ack_timeout_ms / 1000);
    seconds.fractional_part = (uint16_t)(parameters->ack_timeout_ms % 1000);
    /* libcoap rounds to 1/64 s. */
    steps = 64 * (uint32_t)seconds.integer_part + (64 * (uint32_t)seconds.fractional_part + 500) / 1000;
    parameters->ack_timeout_ms = (1000 * steps + 32) / 64;
    parameters->max_retransmit = 0;
    for (total_ms = parameters->ack_timeout_ms; total_ms < PATIENCE_MS; total_ms = 2 * total_ms + parameters->ack_timeout_ms) {
        parameters->max_retransmit++;
    }
    coap_session_set_ack_timeout(session, seconds);
    coap_session_set_ack_random_factor(session, one);
    coap_session_set_max_retransmit(session, parameters->max_retransmit);
}

coap_mid_t coapace_setters_send(struct coapace_setters *peer, coap_session_t *session, coap_pdu_t *request)
{
    coap_bin_const_t token = coap_pdu_get_token(request);
    coap_tick_t now;
    bool is_single;
    coap_mid_t mid;
    coap_ticks(&now);
    if (peer->mid != COAP_INVALID_MID && now - peer->departed > (coap_tick_t)LIFETIME_S * COAP_TICKS_PER_SECOND) {
        end(peer, COAPACE_CANCELLED);
    }
    /* A request that waits for a handshake departs later. */
    is_single = peer->mid == COAP_INVALID_MID && coap_pdu_get_type(request) == COAP_MESSAGE_CON &&
                token.length <= sizeof peer->token && coap_session_get_state(session) == COAP_SESSION_STATE_ESTABLISHED;
    if (is_single) {
        set(peer, session);
        peer->departed = now;
        peer->retransmits = 0;
        peer->token_length = (uint8_t)token.length;
        memcpy(peer->token, token.s, token.length);
    }
    mid = coap_send(session, request);
    if (is_single) {
        peer->mid = mid;
    }
    return mid;
}

void coapace_setters_on_event(struct coapace_setters *peer, coap_event_t event)
{
    if (event == COAP_EVENT_MSG_RETRANSMITTED && peer->retransmits < UINT8_MAX) {
        peer->retransmits++;
    }
}

void coapace_setters_on_response(struct coapace_setters *peer, const coap_pdu_t *response)
{
    coap_bin_const_t token = coap_pdu_get_token(response);
    peer->is_silent = false;
    if (peer->mid != COAP_INVALID_MID && token.length == peer->token_length && memcmp(token.s, peer->token, token.length) == 0) {
        /* The time of a separate response, or of a body in blocks, is not a round-trip time. */
        bool is_acknowledgement = coap_pdu_get_type(response) == COAP_MESSAGE_ACK && coap_pdu_get_mid(response) == peer->mid;
        end(peer, is_acknowledgement ? COAPACE_ACKED : COAPACE_CANCELLED);
    }
}

void coapace_setters_on_nack(struct coapace_setters *peer, coap_nack_reason_t reason, coap_mid_t mid)
{
    /* After an error of ICMP, libcoap goes on to retransmit. */
    if (peer->mid == COAP_INVALID_MID || mid != peer->mid || reason == COAP_NACK_ICMP_ISSUE) {
        return;
    }
    peer->is_silent = reason == COAP_NACK_TOO_MANY_RETRIES;
    end(peer, reason == COAP_NACK_TOO_MANY_RETRIES ? COAPACE_GIVEN_UP : reason == COAP_NACK_RST ? COAPACE_RESET : COAPACE_CANCELLED);
}
