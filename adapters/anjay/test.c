/* Drives the adapter through a copy of the timer of avs_coap, on a simulated path with loss. */
#include <string.h>

#include "../common/trial.h"
#include "coapace_anjay.h"

const anjay_transport_set_t ANJAY_TRANSPORT_SET_UDP = {true, false};

static const avs_coap_udp_tx_params_t usual = {{2, 0}, 1.5, 4, 1};
static avs_coap_udp_tx_params_t set = {{2, 0}, 1.5, 4, 1};
static anjay_send_finished_handler_t *handler;
static void *handler_data;
static anjay_send_result_t refusal;

avs_time_monotonic_t avs_time_monotonic_now(void)
{
    avs_time_monotonic_t now = {avs_time_duration_from_scalar((int64_t)trial.now_ms, AVS_TIME_MS)};
    return now;
}

avs_time_duration_t avs_time_duration_from_scalar(int64_t value, avs_time_unit_t unit)
{
    avs_time_duration_t made = {value / 1000, (int32_t)(value % 1000) * 1000000};
    EXPECT(unit == AVS_TIME_MS);
    return made;
}

int avs_time_duration_to_scalar(int64_t *out, avs_time_unit_t unit, avs_time_duration_t value)
{
    *out = unit == AVS_TIME_US ? value.seconds * 1000000 + value.nanoseconds / 1000 : value.seconds * 1000 + value.nanoseconds / 1000000;
    return 0;
}

avs_error_t anjay_update_transport_tx_params(anjay_t *anjay, anjay_transport_set_t transport_set, const avs_coap_udp_tx_params_t *tx_params)
{
    avs_error_t none = {0, 0};
    (void)anjay;
    EXPECT(transport_set.udp && !transport_set.tcp);
    EXPECT(tx_params->ack_timeout.seconds >= 1 && tx_params->ack_random_factor >= 1.0 && tx_params->nstart == 1); /* Anjay's checks */
    set = *tx_params;
    return none;
}

anjay_send_result_t anjay_send(anjay_t *anjay, anjay_ssid_t ssid, const anjay_send_batch_t *data,
                               anjay_send_finished_handler_t *finished_handler, void *finished_handler_data)
{
    (void)anjay, (void)ssid, (void)data;
    handler = finished_handler;
    handler_data = finished_handler_data;
    return refusal;
}

static int last;

static void sent(anjay_t *anjay, anjay_ssid_t ssid, const anjay_send_batch_t *batch, int result, void *data)
{
    (void)anjay, (void)ssid, (void)batch;
    EXPECT(data == &last);
    last = result;
}

static bool request(unsigned peer, bool is_adapted)
{
    int64_t timeout_ms;
    uint64_t due_ms;
    unsigned copies = 0;
    if (!is_adapted) {
        set = usual;
    }
    EXPECT((is_adapted ? coapace_anjay_send : anjay_send)(NULL, (anjay_ssid_t)peer, NULL, sent, &last) == ANJAY_SEND_OK);
    (void)avs_time_duration_to_scalar(&timeout_ms, AVS_TIME_MS, set.ack_timeout);
    timeout_ms += (int64_t)((double)timeout_ms * (set.ack_random_factor - 1.0) * (trial_draw() % 1000) / 1000);
    due_ms = trial.now_ms + (uint64_t)timeout_ms;
    trial_datagram();
    while (trial.arrival_ms > due_ms && copies < set.max_retransmit) {
        trial.now_ms = due_ms;
        timeout_ms *= 2;
        due_ms += (uint64_t)timeout_ms;
        copies++;
        trial_datagram();
    }
    trial.now_ms = trial.arrival_ms < due_ms ? trial.arrival_ms : due_ms;
    handler(NULL, (anjay_ssid_t)peer, NULL, trial.arrival_ms <= due_ms ? ANJAY_SEND_SUCCESS : ANJAY_SEND_TIMEOUT, handler_data);
    EXPECT(last == (trial.arrival_ms <= due_ms ? ANJAY_SEND_SUCCESS : ANJAY_SEND_TIMEOUT));
    return last == ANJAY_SEND_SUCCESS;
}

int main(void)
{
    coapace_anjay_init(&usual, trial_draw);
    trial_judge("anjay", request, 62000, 60, 5);

    /* After a Send that nothing answered, the program's own numbers are in force again. */
    trial.away_until_ms = TRIAL_NEVER;
    EXPECT(!trial_ask(request, 1, true) && set.ack_random_factor == 1.5);
    trial.away_until_ms = 0;

    /* A Send without a handler, and one more than there are places, go through; refused ones free their place. */
    EXPECT(coapace_anjay_send(NULL, 1, NULL, NULL, NULL) == ANJAY_SEND_OK && handler == NULL);
    refusal = ANJAY_SEND_ERR_MUTED;
    for (unsigned i = 0; i < 3 * COAPACE_ANJAY_SENDS; i++) {
        EXPECT(coapace_anjay_send(NULL, 1, NULL, sent, &last) == ANJAY_SEND_ERR_MUTED);
    }
    refusal = ANJAY_SEND_OK;
    for (unsigned i = 0; i < COAPACE_ANJAY_SENDS; i++) {
        EXPECT(coapace_anjay_send(NULL, 1, NULL, sent, &last) == ANJAY_SEND_OK && handler != sent);
    }
    EXPECT(coapace_anjay_send(NULL, 1, NULL, sent, &last) == ANJAY_SEND_OK && handler == sent);
    puts("anjay: refused Sends and too many Sends are right");
    return 0;
}
