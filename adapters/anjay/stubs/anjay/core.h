/* A stub: the part of Anjay that the adapter uses. */
#pragma once
#include <avsystem/coap/udp.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct anjay anjay_t;
typedef uint16_t anjay_ssid_t;
typedef struct {
    bool udp : 1;
    bool tcp : 1;
} anjay_transport_set_t;
typedef struct {
    int category;
    uint16_t code;
} avs_error_t;

extern const anjay_transport_set_t ANJAY_TRANSPORT_SET_UDP;

avs_error_t anjay_update_transport_tx_params(anjay_t *anjay, anjay_transport_set_t transport_set,
                                             const avs_coap_udp_tx_params_t *tx_params);
