/* A stub: LwM2M Send. */
#pragma once
#include <anjay/core.h>

#define ANJAY_SEND_SUCCESS 0
#define ANJAY_SEND_TIMEOUT (-1)
#define ANJAY_SEND_ABORT (-2)
#define ANJAY_SEND_DEFERRED_ERROR (-3)

typedef struct anjay_send_batch anjay_send_batch_t;
typedef enum { ANJAY_SEND_OK = 0, ANJAY_SEND_ERR_MUTED } anjay_send_result_t;
typedef void anjay_send_finished_handler_t(anjay_t *anjay, anjay_ssid_t ssid, const anjay_send_batch_t *batch, int result, void *data);

anjay_send_result_t anjay_send(anjay_t *anjay, anjay_ssid_t ssid, const anjay_send_batch_t *data,
                               anjay_send_finished_handler_t *finished_handler, void *finished_handler_data);
