/* A stub. */
#pragma once

typedef struct {
    int locked;
} mutex_t;
#define MUTEX_INIT \
    { \
        0 \
    }

void mutex_lock(mutex_t *mutex);
void mutex_unlock(mutex_t *mutex);
