/* For the test: what coap-transactions.c asks of the rest of Contiki-NG. */
#pragma once
#include "coap-transactions.h"

void stack_send(void);
uint32_t stack_draw(void);
