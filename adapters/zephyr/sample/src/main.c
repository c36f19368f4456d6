/* Asks a server at 192.0.2.2 for /hello every ten seconds. Nothing in this file is of Coapace: CONFIG_COAPACE_EVERY_REQUEST in
 * prj.conf puts it before the client. For Zephyr 4.4. */
#include <string.h>

#include <zephyr/kernel.h>
#include <zephyr/net/coap_client.h>
#include <zephyr/net/socket.h>

static struct coap_client client;

static void on_response(const struct coap_client_response_data *data, void *sent_ms)
{
    printk("code %d after %d ms\n", data->result_code, (int)(k_uptime_get() - *(int64_t *)sent_ms));
}

int main(void)
{
    struct net_sockaddr server = {.sa_family = NET_AF_INET}; /* of full size: the client copies all of it */
    struct net_sockaddr_in *address = (struct net_sockaddr_in *)&server;
    int sock = zsock_socket(NET_AF_INET, NET_SOCK_DGRAM, NET_IPPROTO_UDP);
    address->sin_port = net_htons(5683);
    (void)zsock_inet_pton(NET_AF_INET, "192.0.2.2", &address->sin_addr);
    (void)coap_client_init(&client, NULL);
    while (true) {
        static int64_t sent_ms;
        struct coap_client_request request = {
            .method = COAP_METHOD_GET, .confirmable = true, .cb = on_response, .user_data = &sent_ms};
        strcpy(request.path, "hello");
        sent_ms = k_uptime_get();
        if (coap_client_req(&client, sock, &server, &request, NULL) < 0) {
            printk("not sent\n");
        }
        k_sleep(K_SECONDS(10));
    }
}
