/* Drives the adapter through a copy of what Zephyr's coap_client and coap_pending do, on a simulated path with loss. */
#include <errno.h>
#include <string.h>

#include "../common/trial.h"
#include "coapace_zephyr.h"

/* CoCoA answers less to a path that loses without a queue. */
#ifdef CONFIG_COAPACE_COCOA
#define MOST_PERCENT 75
#else
#define MOST_PERCENT 40
#endif

/* The kernel. */
static int is_locked;

int k_mutex_lock(struct k_mutex *mutex, k_timeout_t timeout)
{
    (void)mutex, (void)timeout;
    EXPECT(is_locked == 0); /* Zephyr's mutex may be locked twice, but the adapter does not need it */
    return is_locked++;
}

int k_mutex_unlock(struct k_mutex *mutex)
{
    (void)mutex;
    return --is_locked;
}

int64_t k_uptime_get(void) { return (int64_t)trial.now_ms; }
uint32_t sys_rand32_get(void) { return trial_draw(); }

/* The CoAP library: coap_pending as it is in Zephyr. */
struct coap_transmission_parameters coap_get_transmission_parameters(void)
{
    struct coap_transmission_parameters own = {.ack_timeout = 2000, .coap_backoff_percent = 200, .max_retransmission = 4};
#ifdef CONFIG_COAP_RANDOMIZE_ACK_TIMEOUT
    own.ack_random_percent = 150;
#endif
    return own;
}

int coap_pending_init(struct coap_pending *pending, const struct coap_packet *request, const stub_sockaddr *addr,
                      const struct coap_transmission_parameters *params)
{
    (void)request, (void)addr;
    memset(pending, 0, sizeof *pending);
    pending->params = params != NULL ? *params : coap_get_transmission_parameters();
    pending->t0 = k_uptime_get();
    pending->retries = pending->params.max_retransmission;
    return 0;
}

bool coap_pending_cycle(struct coap_pending *pending)
{
    if (pending->timeout == 0) {
        pending->timeout = pending->params.ack_timeout;
#ifdef CONFIG_COAP_RANDOMIZE_ACK_TIMEOUT
        uint32_t most = pending->timeout * pending->params.ack_random_percent / 100;
        EXPECT(most > pending->timeout); /* Zephyr divides by the difference */
        pending->timeout += sys_rand32_get() % (most - pending->timeout);
#endif
        return true;
    }
    if (pending->retries == 0) {
        return false;
    }
    pending->t0 += pending->timeout;
    pending->timeout = pending->timeout * pending->params.coap_backoff_percent / 100;
    pending->retries--;
    return true;
}

/* The client: one request at a time. `blocks` callbacks answer it. Before 4.4, it looks for timeouts every 500 ms. */
static struct coap_client client;
static struct coap_client_request under_way;
static struct coap_pending pending;
static int refusal;
static unsigned blocks;

int coap_client_req(struct coap_client *asked, int sock, const stub_sockaddr *addr, struct coap_client_request *req,
                    struct coap_transmission_parameters *params)
{
    asked->fd = sock;
    if (refusal < 0) {
        return refusal;
    }
    under_way = *req;
    (void)coap_pending_init(&pending, NULL, addr, params);
    (void)coap_pending_cycle(&pending);
    trial_datagram();
    return 0;
}

void coap_client_cancel_requests(struct coap_client *asked)
{
    (void)asked;
    memset(&under_way, 0, sizeof under_way);
}

static void call_back(int16_t code, bool is_last)
{
#if ZEPHYR_VERSION_CODE < ZEPHYR_VERSION(4, 3, 0)
    under_way.cb(code, 0, NULL, 0, is_last, under_way.user_data);
#else
    struct coap_client_response_data data = {.result_code = code, .last_block = is_last};
    under_way.cb(&data, under_way.user_data);
#endif
}

static void run_client(void)
{
    for (unsigned block = 1; under_way.cb != NULL;) {
        uint64_t due_ms = (uint64_t)pending.t0 + pending.timeout;
#if ZEPHYR_VERSION_CODE < ZEPHYR_VERSION(4, 4, 0)
        due_ms = (due_ms + 499) / 500 * 500;
#endif
        if (trial.arrival_ms <= due_ms) {
            struct coap_transmission_parameters same = pending.params;
            trial.now_ms = trial.arrival_ms;
            trial.arrival_ms = TRIAL_NEVER;
            call_back(69, block == blocks);
            if (under_way.cb == NULL || block++ == blocks) {
                return;
            }
            (void)coap_pending_init(&pending, NULL, NULL, &same);
            (void)coap_pending_cycle(&pending);
            trial_datagram();
        } else {
            trial.now_ms = due_ms;
            if (!coap_pending_cycle(&pending)) {
                call_back(-ETIMEDOUT, true);
                return;
            }
            trial_datagram();
        }
    }
}

/* The program. */
static int code;
static unsigned callbacks;
static bool cancels;

#if ZEPHYR_VERSION_CODE < ZEPHYR_VERSION(4, 3, 0)
static void answered(int16_t result_code, size_t offset, const uint8_t *payload, size_t len, bool last_block, void *user_data)
{
    (void)offset, (void)payload, (void)len, (void)last_block;
    code = result_code;
#else
static void answered(const struct coap_client_response_data *data, void *user_data)
{
    code = data->result_code;
#endif
    EXPECT(user_data == &code);
    callbacks++;
    if (cancels) {
        coapace_client_cancel_requests(&client);
    }
}

static struct coap_client_request get(void)
{
    struct coap_client_request made = {.method = COAP_METHOD_GET, .confirmable = true, .cb = answered, .user_data = &code};
    return made;
}

static stub_sockaddr address(unsigned peer)
{
    stub_sockaddr made = {.sa_family = 2};
    memcpy(made.data, &peer, sizeof peer);
    return made;
}

static bool request(unsigned peer, bool is_adapted)
{
    struct coap_client_request asked = get();
    stub_sockaddr addr = address(peer);
    code = 0;
    EXPECT((is_adapted ? coapace_client_req : coap_client_req)(&client, 3, peer == 1 ? NULL : &addr, &asked, NULL) == 0);
    run_client();
    EXPECT(code == 69 || code == -ETIMEDOUT);
    return code == 69;
}

#ifdef CONFIG_COAPACE_EVERY_REQUEST
/* The sample, whose requests the linker leads to the adapter. Its sleep ends the test. */
int sample_main(void);

int zsock_socket(int family, int type, int proto) { return family + type + proto; }
uint16_t net_htons(uint16_t port) { return port; }

int zsock_inet_pton(int family, const char *text, void *made)
{
    memcpy(made, text, 4);
    return family;
}

int coap_client_init(struct coap_client *made, const char *info)
{
    (void)info;
    made->fd = -1;
    return 0;
}

int32_t k_sleep(k_timeout_t timeout)
{
    static unsigned sleeps;
    run_client();
    trial.now_ms += (uint64_t)timeout;
    trial.arrival_ms = TRIAL_NEVER;
    if (++sleeps == 5) {
        EXPECT(pending.params.ack_timeout < 1000);
        puts("zephyr, sample: adapted without a change to it");
        exit(EXIT_SUCCESS);
    }
    return 0;
}
#endif

/* A program with a loop of its own on coap_pending. */
static bool request_pending(unsigned peer, bool is_adapted)
{
    static struct coapace_flight flight;
    struct coap_packet packet = {NULL, 0};
    struct coap_pending own;
    stub_sockaddr addr = address(peer + 5000);
    bool is_answered = false, lasts = true;
    if (is_adapted) {
        (void)coapace_pending_init(&flight, &own, &packet, &addr);
    } else {
        (void)coap_pending_init(&own, &packet, &addr, NULL);
    }
    lasts = coap_pending_cycle(&own);
    trial_datagram();
    while (lasts && !is_answered) {
        uint64_t due_ms = (uint64_t)own.t0 + own.timeout;
        is_answered = trial.arrival_ms <= due_ms;
        trial.now_ms = is_answered ? trial.arrival_ms : due_ms;
        if (!is_answered) {
            lasts = coap_pending_cycle(&own);
            if (lasts) {
                trial_datagram();
            }
        }
    }
    if (is_adapted) {
        coapace_pending_end(&flight, &own, is_answered ? COAPACE_ACKED : COAPACE_GIVEN_UP);
    }
    return is_answered;
}

int main(void)
{
    struct coap_client_request asked = get();
    struct coap_transmission_parameters own = coap_get_transmission_parameters();
    blocks = 1;
#ifdef CONFIG_COAPACE_EVERY_REQUEST
    trial_path(80, 0);
    trial.arrival_ms = TRIAL_NEVER;
    return sample_main();
#endif
    trial_judge("zephyr, coap_client", request, 62000, MOST_PERCENT, 5);
    trial_judge("zephyr, coap_pending", request_pending, 62000, MOST_PERCENT, 5);

    /* A fast path is learnt. Each block of a body is an exchange, and the request after three slow ones waits longer than they. */
    trial_path(80, 0);
    EXPECT(trial_ask(request, 7, true));
    EXPECT(pending.params.ack_timeout >= 2000);
    for (unsigned i = 0; i < 9; i++) {
        EXPECT(trial_ask(request, 7, true));
    }
    EXPECT(pending.params.ack_timeout < 1000);
    trial_path(700, 0);
    blocks = 3;
    callbacks = 0;
    EXPECT(trial_ask(request, 8, true));
    EXPECT(callbacks == 3);
    blocks = 1;
    EXPECT(trial_ask(request, 8, true));
    EXPECT(pending.params.ack_timeout > 700);

    /* What is not to be adapted goes through: parameters of the program's own, and requests that nothing acknowledges. */
    own.ack_timeout = 1234;
    EXPECT(coapace_client_req(&client, 3, NULL, &asked, &own) == 0 && pending.params.ack_timeout == 1234 && under_way.cb == answered);
    asked.confirmable = false;
    EXPECT(coapace_client_req(&client, 3, NULL, &asked, NULL) == 0 && under_way.cb == answered);
    asked.confirmable = true;

    /* A request that the stack refuses, or that its callback cancels, frees its place. One more than there are places goes through. */
    refusal = -EAGAIN;
    for (unsigned i = 0; i < 3 * CONFIG_COAPACE_REQUESTS; i++) {
        EXPECT(coapace_client_req(&client, 3, NULL, &asked, NULL) == -EAGAIN);
    }
    refusal = 0;
    cancels = true;
    blocks = 2;
    for (unsigned i = 0; i < 3 * CONFIG_COAPACE_REQUESTS; i++) {
        EXPECT(trial_ask(request, 9, true));
        EXPECT(coapace_client_req(&client, 3, NULL, &asked, NULL) == 0 && under_way.cb != answered);
        coapace_client_cancel_requests(&client);
    }
    cancels = false;
    for (unsigned i = 0; i < CONFIG_COAPACE_REQUESTS; i++) {
        EXPECT(coapace_client_req(&client, 3, NULL, &asked, NULL) == 0 && under_way.cb != answered);
    }
    EXPECT(coapace_client_req(&client, 3, NULL, &asked, NULL) == 0 && under_way.cb == answered);
    coapace_client_cancel_requests(&client);

    /* An observation is answered many times, and ends by an error. */
#if ZEPHYR_VERSION_CODE < ZEPHYR_VERSION(4, 3, 0)
    static const struct coap_client_option observe = {6};
    asked.options = &observe;
#else
    asked.options[0].code = 6;
#endif
    asked.num_options = 1;
    callbacks = 0;
    EXPECT(coapace_client_req(&client, 3, NULL, &asked, NULL) == 0);
    for (unsigned i = 0; i < 5; i++) {
        call_back(69, true);
    }
    call_back(-ECANCELED, true);
    EXPECT(callbacks == 6);
    puts("zephyr: blocks, observations and cancelled requests are right");
    return 0;
}
