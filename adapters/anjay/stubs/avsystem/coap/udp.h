/* A stub: the numbers of avs_coap. */
#pragma once
#include <avsystem/commons/avs_time.h>
#include <stddef.h>

typedef struct {
    avs_time_duration_t ack_timeout;
    double ack_random_factor;
    unsigned max_retransmit;
    size_t nstart;
} avs_coap_udp_tx_params_t;
