/* A stub. */
#pragma once
#define CONFIG_COAP_ACK_TIMEOUT_MS (2000)
#define CONFIG_COAP_MAX_RETRANSMIT (4)
