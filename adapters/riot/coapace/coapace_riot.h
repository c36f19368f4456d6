/* Coapace for RIOT: what the patched gcoap and unicoap call. A program calls none of it. Licence: MIT OR Apache-2.0. */
#ifndef COAPACE_RIOT_H
#define COAPACE_RIOT_H

#include <stdint.h>

#include "coapace_peers.h"
#include "net/sock/udp.h"

#ifdef __cplusplus
extern "C" {
#endif

#ifndef CONFIG_COAPACE_PEERS
#define CONFIG_COAPACE_PEERS 4 /* destinations that are remembered */
#endif
#ifndef CONFIG_COAPACE_EXCHANGES
#define CONFIG_COAPACE_EXCHANGES 4 /* confirmable messages under way at once; one more gets the stack's own timeouts */
#endif

/* What coapace_riot_expire returns for an exchange that has the stack's own timeouts; no enum coapace_action. */
#define COAPACE_RIOT_NONE 0

/* The first transmission of a confirmable message departs. `exchange` is the address of what the stack keeps for it. Returns the
 * timeout in ms; `stock_ms`, that of the stack, if there is no place. */
uint32_t coapace_riot_depart(const void *exchange, const sock_udp_ep_t *remote, uint32_t stock_ms);

/* The timeout has passed. Returns an enum coapace_action or COAPACE_RIOT_NONE. Writes how long to wait in ms. */
int coapace_riot_expire(const void *exchange, uint32_t *wait_ms);

/* The exchange is over, in a way of enum coapace_end. Nothing happens if it is not known. */
void coapace_riot_end(const void *exchange, uint8_t end);

#ifdef __cplusplus
}
#endif

#endif
