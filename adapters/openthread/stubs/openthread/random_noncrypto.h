/* A stub. */
#pragma once
#include <stdint.h>
uint32_t otRandomNonCryptoGetUint32(void);
