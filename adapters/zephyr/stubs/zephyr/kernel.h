/* A stub: as much of Zephyr's kernel as the adapter and the sample call. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct k_mutex {
    int locked;
};
typedef int k_timeout_t;
#define K_FOREVER (-1)
#define K_SECONDS(seconds) ((seconds) * 1000)
#define K_MUTEX_DEFINE(name) struct k_mutex name
#define printk printf

int k_mutex_lock(struct k_mutex *mutex, k_timeout_t timeout);
int k_mutex_unlock(struct k_mutex *mutex);
int64_t k_uptime_get(void);
int32_t k_sleep(k_timeout_t timeout);
