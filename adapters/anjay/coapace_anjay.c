/* coapace_anjay.h is the documentation. Licence: MIT OR Apache-2.0. */
#include "coapace_anjay.h"

static avs_coap_udp_tx_params_t own_params;
static struct coapace_peer table[COAPACE_ANJAY_SERVERS];
static struct coapace_peers peers;

/* A Send under way. */
static struct slot {
    bool is_taken;
    anjay_send_finished_handler_t *handler;
    void *data;
    struct coapace_flight flight;
} slots[COAPACE_ANJAY_SENDS];

static uint64_t now_us(void)
{
    int64_t us = 0;
    (void)avs_time_duration_to_scalar(&us, AVS_TIME_US, avs_time_monotonic_now().since_monotonic_epoch);
    return (uint64_t)us;
}

void coapace_anjay_init(const avs_coap_udp_tx_params_t *own, uint32_t (*draw)(void))
{
    /* avs_coap doubles the timeout, and refuses an ACK_TIMEOUT below 1 s. */
    struct coapace_stock stock = {.max_retransmit = (uint8_t)(own->max_retransmit < 20 ? own->max_retransmit : 20),
                                  .most_retransmit = 20,
                                  .least_factor = 2000,
                                  .most_factor = 2000,
                                  .dither = 1000,
                                  .least_timeout_ms = 1000};
    int64_t timeout_ms = 0;
    (void)avs_time_duration_to_scalar(&timeout_ms, AVS_TIME_MS, own->ack_timeout);
    if (timeout_ms < 0 || timeout_ms > 1000000) {
        timeout_ms = 1000000;
    }
    stock.span_ms = (uint32_t)timeout_ms * ((UINT32_C(1) << (stock.max_retransmit < 11 ? stock.max_retransmit : 11)) - 1);
    stock.patience_ms = 2 * stock.span_ms + (uint32_t)timeout_ms;
    own_params = *own;
    (void)coapace_peers_init(&peers, table, COAPACE_ANJAY_SERVERS, COAPACE_ANJAY_MECHANISM, &stock, draw);
}

static void finished(anjay_t *anjay, anjay_ssid_t ssid, const anjay_send_batch_t *batch, int result, void *data)
{
    struct slot *slot = data;
    anjay_send_finished_handler_t *handler = slot->handler;
    void *own = slot->data;
    /* The other negative results are answers of the server. */
    uint8_t end = COAPACE_ACKED;
    if (result == ANJAY_SEND_TIMEOUT) {
        end = COAPACE_GIVEN_UP;
        (void)anjay_update_transport_tx_params(anjay, ANJAY_TRANSPORT_SET_UDP, &own_params); /* for the Register that follows */
    } else if (result == ANJAY_SEND_ABORT || result == ANJAY_SEND_DEFERRED_ERROR) {
        end = COAPACE_CANCELLED;
    }
    coapace_peers_end(&peers, &slot->flight, end, now_us());
    slot->is_taken = false;
    handler(anjay, ssid, batch, result, own);
}

anjay_send_result_t coapace_anjay_send(anjay_t *anjay, anjay_ssid_t ssid, const anjay_send_batch_t *data,
                                       anjay_send_finished_handler_t *handler, void *handler_data)
{
    avs_coap_udp_tx_params_t params = own_params;
    struct coapace_parameters advised;
    struct slot *slot = NULL;
    anjay_send_result_t result;
    for (size_t i = 0; i < COAPACE_ANJAY_SENDS && slot == NULL; i++) {
        slot = slots[i].is_taken ? NULL : &slots[i];
    }
    if (slot == NULL || handler == NULL || !coapace_peers_advise(&peers, &slot->flight, &ssid, sizeof ssid, now_us(), &advised)) {
        return anjay_send(anjay, ssid, data, handler, handler_data);
    }
    slot->is_taken = true;
    slot->handler = handler;
    slot->data = handler_data;
    params.ack_timeout = avs_time_duration_from_scalar(advised.ack_timeout_ms, AVS_TIME_MS);
    params.ack_random_factor = 1.0; /* drawn already */
    params.max_retransmit = advised.max_retransmit;
    (void)anjay_update_transport_tx_params(anjay, ANJAY_TRANSPORT_SET_UDP, &params);
    result = anjay_send(anjay, ssid, data, finished, slot);
    if (result != ANJAY_SEND_OK) {
        coapace_peers_end(&peers, &slot->flight, COAPACE_CANCELLED, now_us());
        slot->is_taken = false;
    }
    return result;
}
