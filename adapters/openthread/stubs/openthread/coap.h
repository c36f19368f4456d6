/* A stub: the part of OpenThread's CoAP interface that the adapter uses. */
#pragma once
#include <stdint.h>

typedef struct otInstance otInstance;
typedef struct otMessage otMessage;

typedef enum { OT_ERROR_NONE = 0, OT_ERROR_NO_BUFS = 3, OT_ERROR_INVALID_ARGS = 7, OT_ERROR_ABORT = 11, OT_ERROR_RESPONSE_TIMEOUT = 18 } otError;
typedef enum { OT_COAP_TYPE_CONFIRMABLE = 0, OT_COAP_TYPE_NON_CONFIRMABLE = 1 } otCoapType;

#define OT_COAP_MAX_RETRANSMIT 20
#ifndef OT_COAP_MIN_ACK_TIMEOUT
#define OT_COAP_MIN_ACK_TIMEOUT 1000
#endif

typedef struct {
    uint8_t mFields[16];
} otIp6Address;

typedef struct {
    otIp6Address mPeerAddr;
    uint16_t mPeerPort;
} otMessageInfo;

typedef struct {
    uint32_t mAckTimeout;
    uint8_t mAckRandomFactorNumerator;
    uint8_t mAckRandomFactorDenominator;
    uint8_t mMaxRetransmit;
} otCoapTxParameters;

typedef void (*otCoapResponseHandler)(void *aContext, otMessage *aMessage, const otMessageInfo *aMessageInfo, otError aResult);

otCoapType otCoapMessageGetType(const otMessage *aMessage);
otError otCoapSendRequestWithParameters(otInstance *aInstance, otMessage *aMessage, const otMessageInfo *aMessageInfo,
                                        otCoapResponseHandler aHandler, void *aContext, const otCoapTxParameters *aTxParameters);
