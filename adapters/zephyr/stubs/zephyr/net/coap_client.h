/* A stub: the interface of Zephyr's CoAP client, before and since 4.3, which put the answer into a structure. */
#pragma once
#include <zephyr/net/coap.h>

struct coap_client_option {
    uint16_t code;
};

#if ZEPHYR_VERSION_CODE < ZEPHYR_VERSION(4, 3, 0)
typedef void (*coap_client_response_cb_t)(int16_t result_code, size_t offset, const uint8_t *payload, size_t len, bool last_block,
                                          void *user_data);
#else
struct coap_client_response_data {
    int16_t result_code;
    const struct coap_packet *packet;
    size_t offset;
    const uint8_t *payload;
    size_t payload_len;
    bool last_block;
};
typedef void (*coap_client_response_cb_t)(const struct coap_client_response_data *data, void *user_data);
#endif

struct coap_client_request {
    enum coap_method method;
    bool confirmable;
#if ZEPHYR_VERSION_CODE < ZEPHYR_VERSION(4, 3, 0)
    const char *path;
    const struct coap_client_option *options;
#else
    char path[65];
    struct coap_client_option options[2];
#endif
    coap_client_response_cb_t cb;
    uint8_t num_options;
    void *user_data;
};

struct coap_client {
    int fd;
};

int coap_client_init(struct coap_client *client, const char *info);
int coap_client_req(struct coap_client *client, int sock, const stub_sockaddr *addr, struct coap_client_request *req,
                    struct coap_transmission_parameters *params);
void coap_client_cancel_requests(struct coap_client *client);
