/* Drives the adapter through a copy of the timer of OpenThread's CoAP, on a simulated path with loss. */
#include <string.h>

#include "../common/trial.h"
#include "coapace_openthread.h"

struct otMessage {
    otCoapType type;
};

static otCoapTxParameters set;
static otCoapResponseHandler handler;
static void *context;
static otError refusal;

/* The clock wraps soon after the beginning. */
uint32_t otPlatAlarmMilliGetNow(void) { return (uint32_t)(trial.now_ms - 100000); }
uint32_t otRandomNonCryptoGetUint32(void) { return trial_draw(); }
otCoapType otCoapMessageGetType(const otMessage *message) { return message->type; }

otError otCoapSendRequestWithParameters(otInstance *instance, otMessage *message, const otMessageInfo *info, otCoapResponseHandler given,
                                        void *own, const otCoapTxParameters *parameters)
{
    static const otCoapTxParameters usual = {2000, 3, 2, 4};
    (void)instance, (void)info, (void)message;
    set = parameters != NULL ? *parameters : usual;
    handler = given;
    context = own;
    if (set.mAckTimeout < OT_COAP_MIN_ACK_TIMEOUT || set.mMaxRetransmit > OT_COAP_MAX_RETRANSMIT ||
        set.mAckRandomFactorNumerator < set.mAckRandomFactorDenominator) {
        return OT_ERROR_INVALID_ARGS;
    }
    return refusal;
}

static unsigned answers;

static void answered(void *own, otMessage *message, const otMessageInfo *info, otError result)
{
    (void)message, (void)info, (void)result;
    EXPECT(own == &answers);
    answers++;
}

static bool request(unsigned peer, bool is_adapted)
{
    otMessage message = {OT_COAP_TYPE_CONFIRMABLE};
    otMessageInfo info = {{{0xfd}}, 5683};
    uint64_t timeout_ms, due_ms;
    unsigned copies = 0, before = answers;
    memcpy(&info.mPeerAddr.mFields[8], &peer, sizeof peer);
    EXPECT((is_adapted ? coapace_ot_send_request(NULL, &message, &info, answered, &answers)
                       : otCoapSendRequestWithParameters(NULL, &message, &info, answered, &answers, NULL)) == OT_ERROR_NONE);
    timeout_ms = set.mAckTimeout * set.mAckRandomFactorNumerator / set.mAckRandomFactorDenominator - set.mAckTimeout + 1;
    timeout_ms = set.mAckTimeout + trial_draw() % timeout_ms;
    due_ms = trial.now_ms + timeout_ms;
    trial_datagram();
    while (trial.arrival_ms > due_ms && copies < set.mMaxRetransmit) {
        trial.now_ms = due_ms;
        timeout_ms *= 2;
        due_ms += timeout_ms;
        copies++;
        trial_datagram();
    }
    trial.now_ms = trial.arrival_ms < due_ms ? trial.arrival_ms : due_ms;
    handler(context, NULL, NULL, trial.arrival_ms <= due_ms ? OT_ERROR_NONE : OT_ERROR_RESPONSE_TIMEOUT);
    EXPECT(answers == before + 1);
    return trial.arrival_ms <= due_ms;
}

int main(void)
{
    otMessage message = {OT_COAP_TYPE_NON_CONFIRMABLE};
    otMessageInfo info = {{{0}}, 5683};
    char name[64];
    (void)snprintf(name, sizeof name, "openthread, %d ms at least", OT_COAP_MIN_ACK_TIMEOUT);
    trial_judge(name, request, 62000, OT_COAP_MIN_ACK_TIMEOUT == 1000 ? 60 : 25, 5);

    /* What is not to be adapted goes through; so does one request more than there are places. */
    EXPECT(coapace_ot_send_request(NULL, &message, &info, answered, NULL) == OT_ERROR_NONE && handler == answered);
    message.type = OT_COAP_TYPE_CONFIRMABLE;
    refusal = OT_ERROR_NO_BUFS;
    for (unsigned i = 0; i < 3 * COAPACE_OPENTHREAD_REQUESTS; i++) {
        EXPECT(coapace_ot_send_request(NULL, &message, &info, answered, NULL) == OT_ERROR_NO_BUFS);
    }
    refusal = OT_ERROR_NONE;
    for (unsigned i = 0; i < COAPACE_OPENTHREAD_REQUESTS; i++) {
        EXPECT(coapace_ot_send_request(NULL, &message, &info, NULL, NULL) == OT_ERROR_NONE && handler != answered);
    }
    EXPECT(coapace_ot_send_request(NULL, &message, &info, answered, NULL) == OT_ERROR_NONE && handler == answered);
    puts("openthread: refused requests and too many requests are right");
    return 0;
}
