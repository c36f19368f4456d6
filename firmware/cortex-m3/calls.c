/* The functions that a program with one mechanism calls, and nothing else. firmware/report measures their size. */
#include "coapace.h"

/* Nothing is called, so any type of function will do. */
typedef void (*function)(void);

const function calls[] = {
    (function)coapace_init,   (function)coapace_state_init, (function)coapace_on_start, (function)coapace_on_retransmit,
    (function)coapace_on_end, (function)coapace_limits,     (function)coapace_gauges,
};
