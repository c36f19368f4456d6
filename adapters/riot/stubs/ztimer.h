/* A stub. */
#pragma once
#include <stdint.h>
#define ZTIMER_MSEC ((void *)0)
uint32_t ztimer_now(void *clock);
