/* Coapace for Zephyr: the timeouts of coap_client and of coap_pending follow the round-trip time. Licence: MIT OR Apache-2.0. */
#ifndef COAPACE_ZEPHYR_H
#define COAPACE_ZEPHYR_H

#include <zephyr/kernel.h>
#include <zephyr/net/coap.h>
#include <zephyr/version.h>
#ifdef CONFIG_COAP_CLIENT
#include <zephyr/net/coap_client.h>
#endif

#include "coapace_peers.h"

#ifdef __cplusplus
extern "C" {
#endif

#if ZEPHYR_VERSION_CODE < ZEPHYR_VERSION(4, 0, 0)
#error "coapace needs Zephyr 4.0 or later"
#elif ZEPHYR_VERSION_CODE < ZEPHYR_VERSION(4, 4, 0)
typedef struct sockaddr coapace_sockaddr;
#else
typedef struct net_sockaddr coapace_sockaddr;
#endif

#ifdef CONFIG_COAP_CLIENT
/* Does what coap_client_req does, and takes and returns the same. A confirmable request without `params` gets the timeouts of the
 * mechanism, and its answers are timed: one for each callback, so each block of a body, too. With CONFIG_COAPACE_EVERY_REQUEST,
 * coap_client_req does this. */
int coapace_client_req(struct coap_client *client, int sock, const coapace_sockaddr *addr, struct coap_client_request *req,
                       struct coap_transmission_parameters *params);

/* Does what coap_client_cancel_requests does. It also frees requests that are cancelled within their own callback, for which the
 * stack makes no further callback. */
void coapace_client_cancel_requests(struct coap_client *client);
#endif

/* Does what coap_pending_init does, with the timeouts of the mechanism. `flight` is the caller's, zeros at first, one for each
 * pending. Returns what coap_pending_init returns. */
int coapace_pending_init(struct coapace_flight *flight, struct coap_pending *pending, const struct coap_packet *request,
                         const coapace_sockaddr *addr);

/* The exchange of a pending is over: COAPACE_ACKED as its answer or acknowledgement has come, COAPACE_GIVEN_UP as coap_pending_cycle
 * has returned false. To be called before coap_pending_clear. */
void coapace_pending_end(struct coapace_flight *flight, const struct coap_pending *pending, enum coapace_end end);

#ifdef __cplusplus
}
#endif

#endif
