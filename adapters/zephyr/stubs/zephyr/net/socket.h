/* A stub: addresses, and the sockets of the sample. Zephyr 4.4 put a prefix before the names of POSIX. */
#pragma once
#include <stdint.h>
#include <zephyr/version.h>

#if ZEPHYR_VERSION_CODE < ZEPHYR_VERSION(4, 4, 0)
#define STUB_NAME(name) name
#define AF_INET 1
#define AF_INET6 2
#define SOCK_DGRAM 2
#define IPPROTO_UDP 17
#else
#define STUB_NAME(name) net_##name
#define NET_AF_INET 1
#define NET_AF_INET6 2
#define NET_SOCK_DGRAM 2
#define NET_IPPROTO_UDP 17
#endif

struct STUB_NAME(sockaddr) {
    uint16_t sa_family;
    char data[22];
};
struct STUB_NAME(in_addr) {
    uint8_t s4_addr[4];
};
struct STUB_NAME(sockaddr_in) {
    uint16_t sin_family, sin_port;
    struct STUB_NAME(in_addr) sin_addr;
};
typedef struct STUB_NAME(sockaddr) stub_sockaddr;

int zsock_socket(int family, int type, int proto);
uint16_t STUB_NAME(htons)(uint16_t port);
int zsock_inet_pton(int family, const char *text, void *address);
