/* Coapace for OpenThread's CoAP: the timeouts of requests follow the round-trip time. Licence: MIT OR Apache-2.0. */
#ifndef COAPACE_OPENTHREAD_H
#define COAPACE_OPENTHREAD_H

#include <openthread/coap.h>

#include "coapace_peers.h"

#ifdef __cplusplus
extern "C" {
#endif

#ifndef COAPACE_OPENTHREAD_PEERS
#define COAPACE_OPENTHREAD_PEERS 8 /* destinations that are remembered */
#endif
#ifndef COAPACE_OPENTHREAD_REQUESTS
#define COAPACE_OPENTHREAD_REQUESTS 4 /* requests under way at once that are timed; one more gets the stack's own timeouts */
#endif
#ifndef COAPACE_OPENTHREAD_MECHANISM
#define COAPACE_OPENTHREAD_MECHANISM COAPACE_EBB_PLAIN
#endif

/* Does what otCoapSendRequest does, and takes and returns the same. For requests with one answer: an observation, which is answered
 * again and again, goes by otCoapSendRequest. As all of OpenThread's functions, to be called by the thread of OpenThread. */
otError coapace_ot_send_request(otInstance *instance, otMessage *message, const otMessageInfo *info, otCoapResponseHandler handler,
                                void *context);

#ifdef __cplusplus
}
#endif

#endif
