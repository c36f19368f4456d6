/* Coapace for Wakaama: timeouts of LwM2M's confirmable messages follow the round-trip time. Licence: MIT OR Apache-2.0. */
#ifndef COAPACE_WAKAAMA_H
#define COAPACE_WAKAAMA_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef COAPACE_WAKAAMA_PEERS
#define COAPACE_WAKAAMA_PEERS 4 /* servers that are remembered, or clients by a server */
#endif
#ifndef COAPACE_WAKAAMA_TRANSACTIONS
#define COAPACE_WAKAAMA_TRANSACTIONS 8 /* transactions under way at once; one more gets the stack's own timeouts */
#endif
#ifndef COAPACE_WAKAAMA_MECHANISM
#define COAPACE_WAKAAMA_MECHANISM COAPACE_EBB_PLAIN
#endif

/* The program has these two: a clock of milliseconds that never runs back and may wrap, and random numbers of 32 bits. Wakaama's own
 * clock counts whole seconds. */
uint32_t coapace_wakaama_clock_ms(void);
uint32_t coapace_wakaama_random(void);

/* Returns how long the program may wait until its next call of lwm2m_step, in ms: `most_ms`, or less. Without this call the program
 * steps at whole seconds, as Wakaama asks for, and copies depart late. */
uint32_t coapace_wakaama_wait(uint32_t most_ms);

#ifdef __cplusplus
}
#endif

#endif
