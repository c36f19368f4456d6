/* Tests of the patch and of the adapters, by a server in the same process that loses what the test wants. With WITH_OPS: of
 * congestion-control.patch and coapace_ops.c; else of coapace_setters.c. With the argument `log`: nothing but the timeouts of libcoap
 * without an adapter, to compare them with and without the patch. Licence: MIT OR Apache-2.0. */
#include <stdio.h>
#include <stdlib.h>

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#ifdef WITH_OPS
#include "coapace_ops.c"
#else
#include "coapace_setters.c"
#endif

#define CHECK(fact) check((fact), #fact, __LINE__)

/* What the server does with a request. */
enum reply { LOSE, ANSWER, ACKNOWLEDGE, RESET, SEPARATE_NON, NOTIFY };

static coap_context_t *context;
static coap_session_t *session;
static int server;
static enum reply replies[8]; /* to the first datagrams of a test; the others are answered */
static unsigned received, retransmits, responses, failures;
static coap_nack_reason_t failure;
static unsigned timeout_ms; /* the last one in libcoap's log */
static bool shows_log;
static uint8_t last[64]; /* the last request */

static void check(bool holds, const char *fact, int line)
{
    if (!holds) {
        fprintf(stderr, "test.c:%d: not so: %s\n", line, fact);
        exit(EXIT_FAILURE);
    }
}

static void on_log(coap_log_t level, const char *message)
{
    const char *added = strstr(message, "added to retransmit queue ("), *next = strstr(message, "(next ");
    (void)level;
    if (added != NULL || next != NULL) {
        timeout_ms = (unsigned)strtoul(strpbrk(added != NULL ? added : next, "0123456789"), NULL, 10);
        if (shows_log) {
            printf("%u ms\n", timeout_ms);
        }
    }
}

/* Takes datagrams from libcoap, and replies. */
static void serve(void)
{
    struct sockaddr_in from;
    socklen_t size = sizeof from;
    ssize_t length = recvfrom(server, last, sizeof last, MSG_DONTWAIT, (struct sockaddr *)&from, &size);
    uint8_t token = last[0] & 15, reply[16] = {0};
    enum reply how;
    if (length < 4 || (last[0] >> 4 & 3) != 0) { /* only confirmable messages */
        return;
    }
    how = received < sizeof replies / sizeof *replies ? replies[received] : ANSWER;
    received++;
    length = 4 + token;
    memcpy(reply, last, (size_t)length);
    reply[0] = (uint8_t)(0x60 | token);
    reply[1] = 0x45; /* 2.05 in an acknowledgement */
    if (how == ACKNOWLEDGE || how == RESET) {
        reply[0] = how == RESET ? 0x70 : 0x60;
        reply[1] = 0;
        length = 4;
    } else if (how == SEPARATE_NON || how == NOTIFY) {
        reply[0] = (uint8_t)(0x50 | token);
        reply[2] ^= 0x80; /* a Message ID of its own */
    }
    if (how == NOTIFY) {
        reply[length++] = 0x61; /* Observe: 1 */
        reply[length++] = 1;
    }
    if (how != LOSE) {
        (void)!sendto(server, reply, (size_t)length, 0, (struct sockaddr *)&from, size);
    }
}

static coap_response_t on_response(coap_session_t *of, const coap_pdu_t *sent, const coap_pdu_t *response, coap_mid_t mid)
{
    (void)of, (void)sent, (void)response, (void)mid;
    responses++;
    return COAP_RESPONSE_OK;
}

static int on_event(coap_session_t *of, coap_event_t event)
{
    (void)of;
    retransmits += event == COAP_EVENT_MSG_RETRANSMITTED ? 1 : 0;
    return 0;
}

static void on_nack(coap_session_t *of, const coap_pdu_t *sent, coap_nack_reason_t reason, coap_mid_t mid)
{
    (void)of, (void)sent, (void)mid;
    failures++;
    failure = reason;
}

static coap_pdu_t *new_get(void)
{
    static uint8_t token;
    coap_pdu_t *request = coap_new_pdu(COAP_MESSAGE_CON, COAP_REQUEST_CODE_GET, session);
    CHECK(request != NULL);
    token++;
    coap_add_token(request, 1, &token);
    return request;
}

/* Begins a test: the server will do this with the next three datagrams. */
static void expect(enum reply first, enum reply second, enum reply third)
{
    received = retransmits = responses = failures = 0;
    replies[0] = first;
    replies[1] = second;
    replies[2] = third;
    for (size_t i = 3; i < sizeof replies / sizeof *replies; i++) {
        replies[i] = ANSWER;
    }
}

/* Lets libcoap work until so many responses and failures have arrived, or ten seconds have passed. */
static void run(unsigned ends)
{
    for (int i = 0; i < 2000 && responses + failures < ends; i++) {
        coap_io_process(context, 5);
        serve();
    }
    CHECK(responses + failures >= ends);
}

static int half(void *bytes, size_t size)
{
    memset(bytes, 0x80, size);
    return 1;
}

static void open_session(void)
{
    struct sockaddr_in own;
    socklen_t size = sizeof own;
    coap_address_t to;
    coap_address_init(&to);
    to.size = sizeof to.addr.sin;
    to.addr.sin.sin_family = AF_INET;
    to.addr.sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    server = socket(AF_INET, SOCK_DGRAM, 0);
    CHECK(server >= 0 && bind(server, &to.addr.sa, to.size) == 0);
    CHECK(getsockname(server, (struct sockaddr *)&own, &size) == 0);
    to.addr.sin.sin_port = own.sin_port;
    coap_startup();
    if (shows_log) {
        coap_set_prng(half);
    }
    coap_set_log_handler(on_log);
    coap_set_log_level(COAP_LOG_DEBUG);
    coap_set_show_pdu_output(0); /* to the log */
    context = coap_new_context(NULL);
    session = context != NULL ? coap_new_client_session(context, NULL, &to, COAP_PROTO_UDP) : NULL;
    CHECK(session != NULL);
    coap_register_response_handler(context, on_response);
    coap_register_nack_handler(context, on_nack);
    coap_register_event_handler(context, on_event);
}

/* Prints the timeouts of one request that is lost three times and given up, and of one that is answered. */
static int log_timeouts(void)
{
    coap_fixed_point_t second = {1, 0};
    coap_session_set_ack_timeout(session, second);
    coap_session_set_max_retransmit(session, 2);
    expect(LOSE, LOSE, LOSE);
    CHECK(coap_send(session, new_get()) != COAP_INVALID_MID && coap_send(session, new_get()) != COAP_INVALID_MID);
    run(2);
    printf("%u datagrams, %u responses, %u failures\n", received, responses, failures);
    return EXIT_SUCCESS;
}

static struct coapace_mechanism mechanism;

#ifdef WITH_OPS
/* Functions that write what happens into `record`: s start, n start without congestion control, r retransmit, w wait, g give up,
 * and the end. */
static char record[32];
static const char *plan; /* what expire does */
static bool refuses;

static void note(char what)
{
    size_t length = strlen(record);
    CHECK(length + 1 < sizeof record);
    record[length] = what;
    record[length + 1] = '\0';
}

static void *note_start(void *arg, const coap_cc_cue_t *cue, coap_tick_t *timeout)
{
    CHECK(arg == record && cue->max_retransmit == 4 && cue->con_active == 1);
    note(refuses ? 'n' : 's');
    if (refuses) {
        return NULL;
    }
    *timeout = COAP_TICKS_PER_SECOND / 50;
    return arg;
}

static coap_cc_action_t note_expire(void *exchange, const coap_cc_cue_t *cue, coap_tick_t *timeout)
{
    CHECK(exchange == record && cue->con_active == 1);
    note(*plan);
    *timeout = COAP_TICKS_PER_SECOND / 50;
    return *plan == 'g' ? COAP_CC_GIVE_UP : *plan++ == 'w' ? COAP_CC_WAIT : COAP_CC_RETRANSMIT;
}

static void note_end(void *exchange, const coap_cc_cue_t *cue, coap_cc_end_t how)
{
    CHECK(exchange == record && cue->con_active == (how == COAP_CC_ACKED || how == COAP_CC_GIVEN_UP ? 1 : 0));
    note("?ARCG"[how]);
}

/* Sends a request, and returns what the functions saw. */
static const char *ask(const char *planned)
{
    record[0] = '\0';
    plan = planned;
    CHECK(coap_send(session, new_get()) != COAP_INVALID_MID);
    run(1);
    return record;
}

static const coap_cc_ops_t OPS = {note_start, note_expire, note_end};

static void test_patch(void)
{
    coap_session_set_cc(session, &OPS, record);
    expect(ANSWER, ANSWER, ANSWER);
    CHECK(strcmp(ask("g"), "sA") == 0 && received == 1 && responses == 1);
    expect(LOSE, LOSE, ANSWER);
    CHECK(strcmp(ask("rrg"), "srrA") == 0 && received == 3);
    expect(LOSE, ANSWER, ANSWER);
    CHECK(strcmp(ask("wwrg"), "swwrA") == 0 && received == 2 && retransmits == 1);
    expect(LOSE, LOSE, LOSE);
    CHECK(strcmp(ask("rrwg"), "srrwgG") == 0 && received == 3 && failure == COAP_NACK_TOO_MANY_RETRIES);
    expect(RESET, ANSWER, ANSWER);
    CHECK(strcmp(ask("g"), "sR") == 0 && failure == COAP_NACK_RST);
    expect(SEPARATE_NON, ANSWER, ANSWER);
    CHECK(strcmp(ask("g"), "sA") == 0 && responses == 1);
    expect(NOTIFY, ANSWER, ANSWER);
    CHECK(strcmp(ask("g"), "sC") == 0 && responses == 1);
    /* The session has two requests, and NSTART is 1. */
    expect(LOSE, ANSWER, ANSWER);
    record[0] = '\0';
    plan = "rg";
    CHECK(coap_send(session, new_get()) != COAP_INVALID_MID && coap_send(session, new_get()) != COAP_INVALID_MID);
    run(2);
    CHECK(strcmp(record, "srAsA") == 0 && received == 3);
    /* An empty acknowledgement ends the wait, before any response. */
    expect(ACKNOWLEDGE, ANSWER, ANSWER);
    record[0] = '\0';
    CHECK(coap_send(session, new_get()) != COAP_INVALID_MID);
    for (int i = 0; i < 100 && record[1] == '\0'; i++) {
        coap_io_process(context, 5);
        serve();
    }
    CHECK(strcmp(record, "sA") == 0 && responses == 0);
    /* Without congestion control, by the functions or without them, there are libcoap's timeouts. */
    expect(ANSWER, ANSWER, ANSWER);
    refuses = true;
    CHECK(strcmp(ask("g"), "n") == 0 && timeout_ms >= 2000 && timeout_ms <= 3000);
    refuses = false;
    coap_session_set_cc(session, NULL, NULL);
    expect(ANSWER, ANSWER, ANSWER);
    CHECK(strcmp(ask("g"), "") == 0 && timeout_ms >= 2000 && timeout_ms <= 3000);
}

/* The functions change while a request waits, which keeps its own. The end of the connection ends the wait. */
static void test_disconnection(void)
{
    coap_session_set_cc(session, &OPS, record);
    record[0] = '\0';
    expect(LOSE, LOSE, LOSE);
    CHECK(coap_send(session, new_get()) != COAP_INVALID_MID);
    coap_session_set_cc(session, NULL, NULL);
    coap_session_disconnected(session, COAP_NACK_NOT_DELIVERABLE);
    CHECK(strcmp(record, "sC") == 0);
}

/* Sends a request that nobody answers. Returns the seconds until it fails. There are no more than five datagrams in any 45 s. */
static coap_tick_t patience(struct coapace_ops *peer, coap_tick_t *now, uint32_t draw)
{
    coap_cc_cue_t cue = {*now, draw, 4, 1};
    coap_tick_t timeout = 0, sent[8];
    unsigned copies = 0;
    void *exchange = start(peer, &cue, &timeout);
    coap_cc_action_t action = COAP_CC_RETRANSMIT;
    CHECK(exchange != NULL);
    sent[0] = *now;
    while (action != COAP_CC_GIVE_UP) {
        cue.now += timeout;
        action = expire(exchange, &cue, &timeout);
        if (action == COAP_CC_RETRANSMIT) {
            CHECK(++copies < 6);
            sent[copies] = cue.now;
        }
    }
    end(exchange, &cue, COAP_CC_GIVEN_UP);
    for (unsigned i = 0; i + 5 <= copies; i++) {
        CHECK(sent[i + 5] - sent[i] >= 45 * COAP_TICKS_PER_SECOND);
    }
    timeout = cue.now - *now;
    *now = cue.now;
    return timeout / COAP_TICKS_PER_SECOND;
}

static void test_adapter(void)
{
    static struct coapace_ops peer;
    struct coapace_gauges gauges;
    coap_tick_t now = 5000, timeout = 0;
    coap_cc_cue_t cue = {now, 0, 4, 1};
    void *exchange;
    CHECK(coapace_ops_attach(NULL, session, &mechanism) == COAPACE_NULL_POINTER);
    CHECK(coapace_ops_attach(&peer, session, &mechanism) == COAPACE_OK);
    for (int i = 0; i < 8; i++) {
        expect(ANSWER, ANSWER, ANSWER);
        (void)ask("g");
        CHECK(i > 0 || (timeout_ms >= 2000 && timeout_ms <= 2500));
    }
    CHECK(coapace_gauges(&peer.mechanism, &peer.state, &gauges) == COAPACE_OK && gauges.has_srtt == 1 && gauges.srtt_us < 500000);
    CHECK(timeout_ms < 1000);
    expect(LOSE, LOSE, ANSWER);
    (void)ask("g");
    CHECK(received == 3 && responses == 1 && peer.slots[0].owner == NULL);
    /* By hand, with times of our own. */
    CHECK(coapace_ops_attach(&peer, session, &mechanism) == COAPACE_OK);
    CHECK(patience(&peer, &now, 0) == 92 && peer.is_silent && patience(&peer, &now, UINT32_MAX) >= 93); /* of ebb's own timeouts */
    for (uint64_t i = 0; i < 20; i++) { /* 100 ms */
        cue.now = now + i * 1000;
        exchange = start(&peer, &cue, &timeout);
        cue.now += COAP_TICKS_PER_SECOND / 10;
        end(exchange, &cue, COAP_CC_ACKED);
        CHECK(!peer.is_silent);
    }
    CHECK(timeout < COAP_TICKS_PER_SECOND / 4);
    now = cue.now;
    CHECK(patience(&peer, &now, 0) == 93 && patience(&peer, &now, UINT32_MAX) == 93);
    /* The answer to a copy is no sample, but one that comes 10 ms after the copy answers the first transmission. */
    for (unsigned i = 0; i < 100; i++) {
        coap_tick_t rtt = i < 99 ? 95 + i % 2 * 20 : 10;
        exchange = start(&peer, &cue, &timeout);
        cue.now += 1000;
        CHECK(expire(exchange, &cue, &timeout) == COAP_CC_RETRANSMIT);
        cue.now += rtt;
        end(exchange, &cue, COAP_CC_ACKED);
        (void)coapace_gauges(&peer.mechanism, &peer.state, &gauges);
        CHECK(i < 99 ? gauges.srtt_us == 100000 : gauges.srtt_us > 200000);
    }
    /* As many as there are slots; the next has libcoap's timeouts. */
    for (size_t i = 0; i < COAPACE_OPS_SLOTS; i++) {
        CHECK(start(&peer, &cue, &timeout) != NULL);
    }
    timeout = 17;
    CHECK(start(&peer, &cue, &timeout) == NULL && timeout == 17);
    /* A clock that is set back gives no sample. */
    (void)coapace_gauges(&peer.mechanism, &peer.state, &gauges);
    timeout = (coap_tick_t)gauges.srtt_us;
    cue.now -= 100000;
    end(&peer.slots[0], &cue, COAP_CC_ACKED);
    (void)coapace_gauges(&peer.mechanism, &peer.state, &gauges);
    CHECK(gauges.srtt_us == (uint64_t)timeout);
}
#else
static struct coapace_setters peer;

static int on_event_adapted(coap_session_t *of, coap_event_t event)
{
    coapace_setters_on_event(&peer, event);
    return on_event(of, event);
}

static coap_response_t on_response_adapted(coap_session_t *of, const coap_pdu_t *sent, const coap_pdu_t *response, coap_mid_t mid)
{
    coapace_setters_on_response(&peer, response);
    return on_response(of, sent, response, mid);
}

static void on_nack_adapted(coap_session_t *of, const coap_pdu_t *sent, coap_nack_reason_t reason, coap_mid_t mid)
{
    coapace_setters_on_nack(&peer, reason, mid);
    on_nack(of, sent, reason, mid);
}

static void ask(enum reply first, enum reply second)
{
    expect(first, second, ANSWER);
    CHECK(coapace_setters_send(&peer, session, new_get()) != COAP_INVALID_MID);
    run(1);
}

/* Returns the smoothed round-trip time in microseconds, or 0 before a sample. */
static uint64_t srtt_us(void)
{
    struct coapace_gauges gauges;
    CHECK(coapace_gauges(&peer.mechanism, &peer.state, &gauges) == COAPACE_OK);
    return gauges.srtt_us;
}

/* Whether libcoap waits at least 93 s with the numbers of the last request, and half of the copies would be too few. */
static bool is_patient(void)
{
    unsigned copies = coap_session_get_max_retransmit(session);
    return timeout_ms * ((2u << copies) - 1) >= 93000 && timeout_ms * ((1u << copies) - 1) < 93000;
}

static void test_adapter(void)
{
    uint64_t before_us;
    coap_mid_t mid;
    coap_register_event_handler(context, on_event_adapted);
    coap_register_response_handler(context, on_response_adapted);
    coap_register_nack_handler(context, on_nack_adapted);
    CHECK(coapace_setters_init(NULL, &mechanism) == COAPACE_NULL_POINTER);
    CHECK(coapace_setters_init(&peer, &mechanism) == COAPACE_OK);
    ask(SEPARATE_NON, ANSWER); /* no round-trip time */
    CHECK(srtt_us() == 0 && peer.mid == COAP_INVALID_MID);
    ask(ANSWER, ANSWER);
    CHECK(timeout_ms >= 1990 && timeout_ms <= 2510 && is_patient() && srtt_us() > 0 && srtt_us() < 500000);
    for (int i = 0; i < 8; i++) {
        ask(ANSWER, ANSWER);
        CHECK(i < 7 || (timeout_ms >= 992 && timeout_ms <= 1258));
    }
    CHECK(is_patient() && peer.parameters.ack_timeout_ms == timeout_ms);
    before_us = srtt_us();
    ask(RESET, ANSWER);
    CHECK(peer.mid == COAP_INVALID_MID && srtt_us() == before_us);
    /* While a request waits, another one teaches nothing. */
    expect(ACKNOWLEDGE, ANSWER, ANSWER);
    mid = coapace_setters_send(&peer, session, new_get());
    CHECK(mid != COAP_INVALID_MID && coapace_setters_send(&peer, session, new_get()) != COAP_INVALID_MID);
    run(1);
    CHECK(peer.mid == mid && srtt_us() == before_us);
    /* After a failure there are as few copies as in RFC 7252, until something arrives. */
    coapace_setters_on_nack(&peer, COAP_NACK_ICMP_ISSUE, mid);
    CHECK(peer.mid == mid);
    coapace_setters_on_nack(&peer, COAP_NACK_TOO_MANY_RETRIES, mid);
    CHECK(peer.mid == COAP_INVALID_MID && peer.is_silent);
    ask(ANSWER, ANSWER);
    CHECK(timeout_ms >= 2992 && timeout_ms <= 3258 && coap_session_get_max_retransmit(session) == 4 && !peer.is_silent);
    ask(ANSWER, ANSWER);
    CHECK(timeout_ms <= 1258);
    ask(LOSE, ANSWER);
    CHECK(received == 2 && responses == 1 && peer.retransmits == 1 && timeout_ms >= 2 * 992 && timeout_ms <= 2 * 1258);
}
#endif

int main(int argc, char *argv[])
{
    (void)argv;
    shows_log = argc > 1;
    open_session();
    if (shows_log) {
        return log_timeouts();
    }
    CHECK(coapace_parse(&mechanism, "ebb") == COAPACE_OK);
#ifdef WITH_OPS
    test_patch();
#endif
    test_adapter();
#ifdef WITH_OPS
    test_disconnection();
#endif
    coap_session_release(session);
    coap_free_context(context);
    coap_cleanup();
    close(server);
    return EXIT_SUCCESS;
}
