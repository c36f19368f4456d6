/* Coapace for Anjay: the timeouts of a LwM2M client follow the round-trip time of its Sends. Licence: MIT OR Apache-2.0. */
#ifndef COAPACE_ANJAY_H
#define COAPACE_ANJAY_H

#include <anjay/core.h>
#include <anjay/lwm2m_send.h>

#include "coapace_peers.h"

#ifdef __cplusplus
extern "C" {
#endif

#ifndef COAPACE_ANJAY_SERVERS
#define COAPACE_ANJAY_SERVERS 4 /* LwM2M servers that are remembered */
#endif
#ifndef COAPACE_ANJAY_SENDS
#define COAPACE_ANJAY_SENDS 4 /* Sends under way at once that are timed; one more goes out untimed */
#endif
#ifndef COAPACE_ANJAY_MECHANISM
#define COAPACE_ANJAY_MECHANISM COAPACE_EBB_PLAIN
#endif

/* To be called once, before coapace_anjay_send. `own` are the numbers that the program would use without Coapace: udp_tx_params of its
 * anjay_configuration_t, or AVS_COAP_DEFAULT_UDP_TX_PARAMS. `draw` returns a random number of 32 bits. */
void coapace_anjay_init(const avs_coap_udp_tx_params_t *own, uint32_t (*draw)(void));

/* Does what anjay_send does, and takes and returns the same. It sets the transmission parameters of all connections over UDP before,
 * and times the server's answer. A Send without a handler is not timed. */
anjay_send_result_t coapace_anjay_send(anjay_t *anjay, anjay_ssid_t ssid, const anjay_send_batch_t *data,
                                       anjay_send_finished_handler_t *handler, void *handler_data);

#ifdef __cplusplus
}
#endif

#endif
