/* coapace_openthread.h is the documentation. Licence: MIT OR Apache-2.0. */
#include "coapace_openthread.h"

#include <openthread/platform/alarm-milli.h>
#include <openthread/random_noncrypto.h>
#include <string.h>

#ifndef OT_COAP_MIN_ACK_TIMEOUT
#define OT_COAP_MIN_ACK_TIMEOUT 1000 /* releases whose header does not say it */
#endif

/* OpenThread doubles the timeout, and checks numbers in otCoapSendRequestWithParameters. */
static const struct coapace_stock stock = {.patience_ms = 62000,
                                           .max_retransmit = 4,
                                           .most_retransmit = OT_COAP_MAX_RETRANSMIT,
                                           .span_ms = 30000,
                                           .least_factor = 2000,
                                           .most_factor = 2000,
                                           .dither = 1000,
                                           .least_timeout_ms = OT_COAP_MIN_ACK_TIMEOUT};

static struct coapace_peer table[COAPACE_OPENTHREAD_PEERS];
static struct coapace_peers peers;
static struct coapace_clock clock_ms;

/* A request under way. */
static struct slot {
    bool is_taken;
    otCoapResponseHandler handler;
    void *context;
    struct coapace_flight flight;
} slots[COAPACE_OPENTHREAD_REQUESTS];

static void respond(void *context, otMessage *message, const otMessageInfo *info, otError result)
{
    struct slot *slot = context;
    otCoapResponseHandler handler = slot->handler;
    void *own = slot->context;
    uint8_t end = result == OT_ERROR_NONE ? COAPACE_ACKED : result == OT_ERROR_RESPONSE_TIMEOUT ? COAPACE_GIVEN_UP : COAPACE_CANCELLED;
    coapace_peers_end(&peers, &slot->flight, end, coapace_clock(&clock_ms, otPlatAlarmMilliGetNow()));
    /* The handler may send the next request. */
    slot->is_taken = false;
    if (handler != NULL) {
        handler(own, message, info, result);
    }
}

otError coapace_ot_send_request(otInstance *instance, otMessage *message, const otMessageInfo *info, otCoapResponseHandler handler,
                                void *context)
{
    uint64_t now_us = coapace_clock(&clock_ms, otPlatAlarmMilliGetNow());
    unsigned char key[sizeof info->mPeerAddr + sizeof info->mPeerPort];
    struct coapace_parameters advised;
    struct slot *slot = NULL;
    otCoapTxParameters parameters;
    otError error;
    if (peers.draw == NULL) {
        (void)coapace_peers_init(&peers, table, COAPACE_OPENTHREAD_PEERS, COAPACE_OPENTHREAD_MECHANISM, &stock, otRandomNonCryptoGetUint32);
    }
    for (size_t i = 0; i < COAPACE_OPENTHREAD_REQUESTS && slot == NULL; i++) {
        slot = slots[i].is_taken ? NULL : &slots[i];
    }
    memcpy(key, &info->mPeerAddr, sizeof info->mPeerAddr);
    memcpy(key + sizeof info->mPeerAddr, &info->mPeerPort, sizeof info->mPeerPort);
    if (slot == NULL || otCoapMessageGetType(message) != OT_COAP_TYPE_CONFIRMABLE ||
        !coapace_peers_advise(&peers, &slot->flight, key, sizeof key, now_us, &advised)) {
        return otCoapSendRequestWithParameters(instance, message, info, handler, context, NULL);
    }
    slot->is_taken = true;
    slot->handler = handler;
    slot->context = context;
    parameters.mAckTimeout = advised.ack_timeout_ms;
    parameters.mAckRandomFactorNumerator = 1; /* drawn already */
    parameters.mAckRandomFactorDenominator = 1;
    parameters.mMaxRetransmit = advised.max_retransmit;
    error = otCoapSendRequestWithParameters(instance, message, info, respond, slot, &parameters);
    if (error != OT_ERROR_NONE) {
        coapace_peers_end(&peers, &slot->flight, COAPACE_CANCELLED, now_us);
        slot->is_taken = false;
    }
    return error;
}
