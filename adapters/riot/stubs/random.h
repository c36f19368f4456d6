/* A stub. */
#pragma once
#include <stdint.h>
uint32_t random_uint32(void);
