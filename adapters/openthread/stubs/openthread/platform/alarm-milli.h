/* A stub. */
#pragma once
#include <stdint.h>
uint32_t otPlatAlarmMilliGetNow(void);
