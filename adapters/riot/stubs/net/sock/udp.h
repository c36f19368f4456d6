/* A stub. */
#pragma once
#include <stdint.h>

#define AF_INET 2
#define AF_INET6 10

typedef struct {
    int family;
    union {
        uint8_t ipv6[16];
        uint8_t ipv4[4];
    } addr;
    uint16_t netif;
    uint16_t port;
} sock_udp_ep_t;
