/* A stub: times of avs_commons. */
#pragma once
#include <stdint.h>

typedef struct {
    int64_t seconds;
    int32_t nanoseconds;
} avs_time_duration_t;
typedef struct {
    avs_time_duration_t since_monotonic_epoch;
} avs_time_monotonic_t;
typedef enum { AVS_TIME_S, AVS_TIME_MS, AVS_TIME_US } avs_time_unit_t;

avs_time_monotonic_t avs_time_monotonic_now(void);
avs_time_duration_t avs_time_duration_from_scalar(int64_t value, avs_time_unit_t unit);
int avs_time_duration_to_scalar(int64_t *out, avs_time_unit_t unit, avs_time_duration_t value);
