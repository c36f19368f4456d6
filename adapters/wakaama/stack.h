/* For the test: what transaction.c asks of the rest of Wakaama, and of the program. */
#pragma once
#include "internals.h"

void stack_send(void);
time_t stack_seconds(void);
