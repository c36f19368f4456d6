/* unit: tests of the functions of coapace.h that are not in crates/ffi, of the turns of clocks, and of mistakes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coapace.h"

#define SECOND UINT64_C(1000000)

static unsigned failed;

static void expect(bool holds, const char *what, int line)
{
    if (!holds) {
        printf("unit.c:%d: %s\n", line, what);
        failed++;
    }
}

#define EXPECT(condition) expect(condition, #condition, __LINE__)

/* A destination, and an exchange with it. */
struct peer {
    struct coapace_mechanism mechanism;
    COAPACE_STATE(COAPACE_STATE_SIZE_MAX) state;
    struct coapace_exchange exchange;
    struct coapace_cue cue;
    uint64_t timeout_us;
};

static struct peer new_peer(int name)
{
    struct peer peer;
    memset(&peer, 0, sizeof peer);
    EXPECT(coapace_init(&peer.mechanism, name) == COAPACE_OK);
    EXPECT(coapace_state_init(&peer.mechanism, &peer.state, sizeof peer.state) == COAPACE_OK);
    peer.cue.outstanding = 1;
    return peer;
}

/* Makes an exchange that is answered after this time. */
static void answer(struct peer *peer, uint64_t rtt_us)
{
    struct coapace_outcome outcome = {{rtt_us, rtt_us, 0, 0, 0, 0}, COAPACE_ACKED};
    EXPECT(coapace_on_start(&peer->mechanism, &peer->state, &peer->exchange, &peer->cue, &peer->timeout_us) == COAPACE_OK);
    peer->cue.now_us += rtt_us;
    EXPECT(coapace_on_end(&peer->mechanism, &peer->state, &peer->exchange, &outcome, &peer->cue) == COAPACE_OK);
}

static uint64_t rto_us(const struct peer *peer)
{
    struct coapace_gauges gauges;
    EXPECT(coapace_gauges(&peer->mechanism, &peer->state, &gauges) == COAPACE_OK);
    return gauges.rto_us;
}

static void texts_and_numbers(void)
{
    static const char *const NAMES[] = {"default", "linux-rto", "cocoa", "fasor", "fasor-token", "fasor-option", "ebb", "ebb-plain",
                                        "tide"};
    unsigned found = 0;
    struct coapace_mechanism mechanism;
    EXPECT(COAPACE_VERSION_NUMBER == 100 && strcmp(coapace_version(), "0.1.0") == 0);
    for (int name = -1; name <= COAPACE_NAMES; name++) {
        const char *text = coapace_name(name);
        if (text != NULL) {
            EXPECT(strcmp(text, NAMES[found++]) == 0);
            EXPECT(coapace_parse(&mechanism, text) == COAPACE_OK && coapace_state_size(&mechanism) > 0);
        }
    }
    EXPECT(found == sizeof NAMES / sizeof *NAMES);
    for (int status = -1; status <= 14; status++) {
        EXPECT(strlen(coapace_strerror(status)) > 1);
    }
    EXPECT(coapace_parse(&mechanism, "eb") == COAPACE_UNKNOWN_MECHANISM && coapace_state_size(&mechanism) == 0);
    EXPECT(coapace_parse(&mechanism, "ebbs") == COAPACE_UNKNOWN_MECHANISM);
    EXPECT(coapace_parse(&mechanism, "") == COAPACE_UNKNOWN_MECHANISM);
    EXPECT(coapace_parse(&mechanism, "ebb:k=3") == COAPACE_NO_PARAMETERS);
    EXPECT(coapace_parse(&mechanism, NULL) == COAPACE_NULL_POINTER && coapace_parse(NULL, "ebb") == COAPACE_NULL_POINTER);
    EXPECT(coapace_set(&mechanism, "k", "3") == COAPACE_NO_PARAMETERS && coapace_set(NULL, "k", "3") == COAPACE_NULL_POINTER);
    EXPECT(coapace_set(&mechanism, NULL, "3") == COAPACE_NULL_POINTER && coapace_set(&mechanism, "k", NULL) == COAPACE_NULL_POINTER);
}

static void null_pointers(void)
{
    struct peer peer = new_peer(COAPACE_EBB);
    struct coapace_outcome outcome = {{0, 0, 0, 0, 0, 0}, COAPACE_RESET};
    struct coapace_limits limits;
    struct coapace_gauges gauges;
    struct coapace_parameters parameters = {0, 0, 0, 0};
    struct coapace_mechanism *m = &peer.mechanism;
    struct coapace_exchange *e = &peer.exchange;
    void *s = &peer.state;
    uint64_t us;
    EXPECT(coapace_init(NULL, COAPACE_EBB) == COAPACE_NULL_POINTER);
    EXPECT(coapace_state_size(NULL) == 0);
    EXPECT(coapace_state_init(NULL, s, 64) == COAPACE_NULL_POINTER && coapace_state_init(m, NULL, 64) == COAPACE_NULL_POINTER);
    EXPECT(coapace_on_start(NULL, s, e, &peer.cue, &us) == COAPACE_NULL_POINTER && us == 3 * SECOND);
    EXPECT(coapace_on_start(m, NULL, e, &peer.cue, &us) == COAPACE_NULL_POINTER);
    EXPECT(coapace_on_start(m, s, NULL, &peer.cue, &us) == COAPACE_NULL_POINTER);
    EXPECT(coapace_on_start(m, s, e, NULL, &us) == COAPACE_NULL_POINTER);
    EXPECT(coapace_on_start(m, s, e, &peer.cue, NULL) == COAPACE_NULL_POINTER);
    EXPECT(coapace_on_retransmit(m, s, NULL, &peer.cue, &us) == COAPACE_NULL_POINTER);
    EXPECT(coapace_on_retransmit(m, s, e, &peer.cue, &us) == COAPACE_BAD_EXCHANGE && us == 3 * SECOND);
    EXPECT(coapace_on_end(m, s, e, NULL, &peer.cue) == COAPACE_NULL_POINTER);
    EXPECT(coapace_on_end(m, s, NULL, &outcome, &peer.cue) == COAPACE_NULL_POINTER);
    EXPECT(coapace_on_end(m, s, e, &outcome, NULL) == COAPACE_NULL_POINTER);
    EXPECT(coapace_max_span(NULL, 4, &us) == COAPACE_NULL_POINTER && coapace_max_span(m, 4, NULL) == COAPACE_NULL_POINTER);
    EXPECT(coapace_limits(NULL, s, &limits) == COAPACE_NULL_POINTER && coapace_limits(m, s, NULL) == COAPACE_NULL_POINTER);
    EXPECT(coapace_gauges(NULL, s, &gauges) == COAPACE_NULL_POINTER && coapace_gauges(m, s, NULL) == COAPACE_NULL_POINTER);
    EXPECT(coapace_may_start(m, s, 0, 0, 0, NULL) == COAPACE_NULL_POINTER);
    EXPECT(coapace_may_start(m, NULL, 0, 0, 0, &us) == COAPACE_NULL_POINTER);
    EXPECT(coapace_parameters(m, s, e, &peer.cue, NULL) == COAPACE_NULL_POINTER);
    EXPECT(coapace_parameters(m, NULL, e, &peer.cue, &parameters) == COAPACE_NULL_POINTER);
    EXPECT(coapace_observed(m, s, e, NULL, 0, COAPACE_ACKED, &peer.cue) == COAPACE_NULL_POINTER);
    EXPECT(coapace_observed(m, s, e, &parameters, 0, 0, &peer.cue) == COAPACE_BAD_OUTCOME);
    EXPECT(coapace_observed(m, s, e, &parameters, 0, 5, &peer.cue) == COAPACE_BAD_OUTCOME);
}

static const int EACH[] = {COAPACE_DEFAULT, COAPACE_LINUX_RTO, COAPACE_COCOA, COAPACE_FASOR, COAPACE_FASOR_TOKEN,
                           COAPACE_FASOR_OPTION, COAPACE_EBB, COAPACE_EBB_PLAIN, COAPACE_TIDE};
enum { MECHANISMS = sizeof EACH / sizeof *EACH };

static void memory_of_another_mechanism_is_refused(void)
{
    struct coapace_gauges gauges;
    struct coapace_outcome outcome = {{0, 0, 0, 0, 0, 0}, COAPACE_ACKED};
    for (unsigned i = 0; i < MECHANISMS; i++) {
        struct peer one = new_peer(EACH[i]);
        unsigned accepted = 0;
        for (unsigned j = 0; j < MECHANISMS; j++) {
            struct peer other = new_peer(EACH[j]);
            accepted += coapace_gauges(&other.mechanism, &one.state, &gauges) == COAPACE_OK ? 1 : 0;
        }
        /* Those of fasor and those of ebb have states in common. */
        EXPECT(accepted == (i >= 3 && i <= 5 ? 3 : i == 6 || i == 7 ? 2 : 1));
        answer(&one, 1000);
        EXPECT(coapace_on_end(&one.mechanism, &one.state, &one.exchange, &outcome, &one.cue) == COAPACE_BAD_EXCHANGE);
    }
}

/* With cocoa, an RTO of exactly 1 s or 3 s is in the band: it does not age, and doubles at a retransmission. */
static void ends_of_a_band_belong_to_it(void)
{
    for (unsigned second = 1; second <= 3; second += 2) {
        struct peer peer = new_peer(COAPACE_COCOA);
        struct coapace_outcome weak = {{4 * SECOND, 2 * SECOND, 0, 1, 0, 0}, COAPACE_ACKED};
        if (second == 1) {
            answer(&peer, SECOND / 4); /* (2 s + 3 * 0.25 s) / 2 */
            answer(&peer, SECOND / 4); /* (1.375 s + 2.5 * 0.25 s) / 2 */
        } else {
            /* (3 * 2 s + 1.5 * 4 s) / 4 */
            (void)coapace_on_start(&peer.mechanism, &peer.state, &peer.exchange, &peer.cue, &peer.timeout_us);
            (void)coapace_on_end(&peer.mechanism, &peer.state, &peer.exchange, &weak, &peer.cue);
        }
        peer.cue.now_us += 100 * SECOND;
        EXPECT(coapace_on_start(&peer.mechanism, &peer.state, &peer.exchange, &peer.cue, &peer.timeout_us) == COAPACE_OK);
        EXPECT(peer.timeout_us == second * SECOND);
        EXPECT(coapace_on_retransmit(&peer.mechanism, &peer.state, &peer.exchange, &peer.cue, &peer.timeout_us) == COAPACE_OK);
        EXPECT(peer.timeout_us == 2 * second * SECOND);
    }
}

/* Patience: the spans of RFC 7252 section 4.8.2, as in crates/proto/src/patience.rs. */
static void no_exchange_is_given_up_sooner_than_rfc_7252_would(void)
{
    uint64_t wait_us = 1;
    EXPECT(coapace_on_timeout(0, 3, 4, &wait_us) == COAPACE_RETRANSMIT && wait_us == 0);
    EXPECT(coapace_on_timeout(SECOND, 4, 4, &wait_us) == COAPACE_WAIT && wait_us == 44 * SECOND);
    EXPECT(coapace_on_timeout(45 * SECOND, 4, 4, &wait_us) == COAPACE_RETRANSMIT && wait_us == 0);
    EXPECT(coapace_on_timeout(62 * SECOND - 1, 4, 4, NULL) == COAPACE_RETRANSMIT);
    EXPECT(coapace_on_timeout(62 * SECOND, 4, 4, NULL) == COAPACE_GIVE_UP);
    EXPECT(coapace_on_timeout(93 * SECOND, 5, 4, NULL) == COAPACE_GIVE_UP);
    EXPECT(coapace_on_timeout(SECOND, 0, 0, &wait_us) == COAPACE_WAIT && wait_us == 2 * SECOND);
    EXPECT(coapace_on_timeout(3 * SECOND, 0, 0, NULL) == COAPACE_GIVE_UP);
    EXPECT(coapace_patient(5, SECOND, 1, 4, false, 0) == 5);
    EXPECT(coapace_patient(5, SECOND, 1, 4, true, 0) == 4 * SECOND);
    EXPECT(coapace_patient(100 * SECOND, SECOND, 1, 4, true, UINT32_MAX) == 100 * SECOND);
    EXPECT(coapace_patient(5, 45 * SECOND, 5, 4, false, 0) == 48 * SECOND);
    EXPECT(coapace_patient(5, 90 * SECOND, 5, 4, true, 0) == 31 * SECOND);
    EXPECT(coapace_patient(5, 900 * SECOND, 5, 4, true, 0) == 31 * SECOND);
    EXPECT(coapace_rfc7252_sum(3000000, 6) == (93 + 60) * SECOND && coapace_rfc7252_timeout(200, 0) == 60 * SECOND);
}

/* Plays two exchanges that nobody answers, over a short path, with patience. */
static void a_silent_peer_gets_five_datagrams_in_45_s(void)
{
    struct peer peer = new_peer(COAPACE_EBB);
    struct coapace_outcome outcome = {{0, 0, 0, 0, 0, 0}, COAPACE_GIVEN_UP};
    uint64_t departed_us[16], began_us, wait_us;
    unsigned departures = 0;
    bool is_silent = false;
    for (int i = 0; i < 20; i++) {
        answer(&peer, 1000);
    }
    for (int exchange = 0; exchange < 2; exchange++) {
        enum coapace_action action = COAPACE_RETRANSMIT;
        uint8_t retransmits = 0;
        began_us = departed_us[departures++] = peer.cue.now_us;
        (void)coapace_on_start(&peer.mechanism, &peer.state, &peer.exchange, &peer.cue, &wait_us);
        wait_us = coapace_patient(wait_us, 0, 0, 4, is_silent, 0);
        for (;;) {
            peer.cue.now_us += wait_us;
            is_silent = is_silent || retransmits >= 4;
            action = coapace_on_timeout(peer.cue.now_us - began_us, retransmits, 4, &wait_us);
            if (action == COAPACE_GIVE_UP) {
                break;
            }
            if (action == COAPACE_RETRANSMIT) {
                departed_us[departures++] = peer.cue.now_us;
                (void)coapace_on_retransmit(&peer.mechanism, &peer.state, &peer.exchange, &peer.cue, &wait_us);
                retransmits++;
                wait_us = coapace_patient(wait_us, peer.cue.now_us - began_us, retransmits, 4, is_silent, 0);
            }
        }
        EXPECT(peer.cue.now_us - began_us >= 62 * SECOND && peer.cue.now_us - began_us <= 93 * SECOND);
        EXPECT(coapace_on_end(&peer.mechanism, &peer.state, &peer.exchange, &outcome, &peer.cue) == COAPACE_OK);
    }
    EXPECT(departures == 6 + 5);
    for (unsigned i = 5; i < departures; i++) {
        EXPECT(departed_us[i] - departed_us[i - 5] >= 45 * SECOND - SECOND);
    }
}

static void nstart_is_1_or_the_window_or_what_the_program_says(void)
{
    struct peer ebb = new_peer(COAPACE_EBB), tide = new_peer(COAPACE_TIDE);
    uint64_t wait_us = 1;
    EXPECT(coapace_may_start(&ebb.mechanism, &ebb.state, 0, 0, 5, &wait_us) == COAPACE_OK && wait_us == 0);
    EXPECT(coapace_may_start(&ebb.mechanism, &ebb.state, 1, 0, 5, &wait_us) == COAPACE_OK && wait_us == COAPACE_NEVER);
    EXPECT(coapace_may_start(&ebb.mechanism, &ebb.state, 3, 4, 5, &wait_us) == COAPACE_OK && wait_us == 0);
    EXPECT(coapace_may_start(&tide.mechanism, &tide.state, 9, 0, 5, &wait_us) == COAPACE_OK && wait_us == 0);
    EXPECT(coapace_may_start(&tide.mechanism, &tide.state, 10, 99, 5, &wait_us) == COAPACE_OK && wait_us == COAPACE_NEVER);
    EXPECT(coapace_may_start(&tide.mechanism, &tide.state, 3, 3, 5, &wait_us) == COAPACE_OK && wait_us == COAPACE_NEVER);
    for (int i = 0; i < 3; i++) {
        answer(&tide, 100000);
    }
    for (int i = 0; i < 4; i++) { /* pacing lets some depart at once */
        EXPECT(coapace_on_start(&tide.mechanism, &tide.state, &tide.exchange, &tide.cue, &tide.timeout_us) == COAPACE_OK);
    }
    EXPECT(coapace_may_start(&tide.mechanism, &tide.state, 1, 0, tide.cue.now_us, &wait_us) == COAPACE_OK);
    EXPECT(wait_us > 0 && wait_us < 100000);
}

static void tokens_carry_the_ordinal_of_copies(void)
{
    unsigned char token[8] = {1, 2}, full[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    struct coapace_sample sample = {0, 0, 0, 2, 0, 0};
    const uint8_t copies = COAPACE_MARKING_TOKEN_ON_RETRANSMIT, all = COAPACE_MARKING_TOKEN, none = COAPACE_MARKING_NONE;
    EXPECT(coapace_mark_token(copies, token, 2, 0) == 2 && coapace_mark_token(none, token, 2, 1) == 2);
    EXPECT(coapace_mark_token(all, token, 2, 0) == 3 && token[2] == 0);
    EXPECT(coapace_mark_token(copies, token, 2, 2) == 3 && token[2] == 2);
    EXPECT(coapace_mark_token(copies, full, 8, 1) == 8);
    EXPECT(coapace_match_token(copies, token, 2, token, 3, &sample) && sample.has_answered == 1 && sample.answered == 2);
    EXPECT(coapace_match_token(copies, token, 2, token, 2, &sample) && sample.has_answered == 1 && sample.answered == 0);
    EXPECT(coapace_match_token(none, token, 2, token, 2, &sample) && sample.has_answered == 0);
    EXPECT(!coapace_match_token(none, token, 2, token, 3, &sample) && !coapace_match_token(all, token, 2, token, 2, &sample));
    EXPECT(coapace_match_token(all, token, 2, token, 3, &sample) && sample.answered == 2);
    EXPECT(!coapace_match_token(copies, token, 2, full, 2 + 1, &sample)); /* an ordinal that was not sent */
    EXPECT(!coapace_match_token(copies, token, 2, full + 1, 2, &sample) && sample.has_answered == 0);
    EXPECT(!coapace_match_token(copies, token, 2, token, 1, &sample));
    EXPECT(coapace_match_token(copies, full, 8, full, 8, &sample) && sample.has_answered == 0);
}

/* A clock of milliseconds wraps, and so do the counters within the states: of cocoa at 2^32 ms, of tide at 2^32 us. */
static void time_wraps(void)
{
    struct coapace_clock clock = {0, UINT32_MAX - 4};
    struct peer cocoa = new_peer(COAPACE_COCOA);
    EXPECT(coapace_clock(&clock, UINT32_MAX) == 4000 && coapace_clock(&clock, 5) == 10000 && coapace_clock(&clock, 5) == 10000);
    cocoa.cue.now_us = (UINT64_C(1) << 32) * 1000 - SECOND;
    answer(&cocoa, 500000); /* renewed half a second before the turn: RTO (2 + 1.5) / 2 s, then (1.75 + 1.25) / 2 s */
    EXPECT(rto_us(&cocoa) == 1750000);
    for (int i = 0; i < 40; i++) {
        answer(&cocoa, 10000);
    }
    EXPECT(rto_us(&cocoa) < SECOND);
    uint64_t small_us = rto_us(&cocoa);
    EXPECT(cocoa.cue.now_us < (UINT64_C(1) << 32) * 1000);
    cocoa.cue.now_us += 17 * small_us; /* beyond the turn, and 16 RTO old once */
    EXPECT(cocoa.cue.now_us > (UINT64_C(1) << 32) * 1000);
    answer(&cocoa, 10000);
    EXPECT(cocoa.timeout_us == 2 * small_us);
    for (unsigned turn = 0; turn < 2; turn++) {
        struct peer tide[2] = {new_peer(COAPACE_TIDE), new_peer(COAPACE_TIDE)};
        tide[0].cue.now_us = SECOND;
        tide[1].cue.now_us = turn == 0 ? (UINT64_C(1) << 32) - SECOND / 4 : (UINT64_C(1) << 32) * 1000 - SECOND / 4;
        for (int i = 0; i < 40; i++) {
            answer(&tide[0], 20000);
            answer(&tide[1], 20000);
            EXPECT(tide[0].timeout_us == tide[1].timeout_us && rto_us(&tide[0]) == rto_us(&tide[1]));
        }
    }
}

static void numbers_of_the_parameter_form(void)
{
    struct peer peer = new_peer(COAPACE_EBB);
    struct coapace_parameters free = {0, 0, 0, 0}, doubling = {0, 0, 2000, 0}, constant = {0, 0, 1000, 0};
    struct coapace_mechanism *m = &peer.mechanism;
    struct coapace_exchange *e = &peer.exchange;
    struct coapace_cue *cue = &peer.cue;
    void *s = &peer.state;
    /* Before the first sample: 2 s, tripled. */
    EXPECT(coapace_parameters(m, s, e, cue, &free) == COAPACE_OK && free.ack_timeout_ms == 2000 && free.backoff_factor == 3000);
    EXPECT(free.max_retransmit == 4 && free.ack_random_factor == 1000);
    EXPECT(coapace_observed(m, s, e, &free, 100000, COAPACE_ACKED, cue) == COAPACE_OK && rto_us(&peer) == 250000);
    /* 250 ms last for 62 s with a factor of 3.75 or more, or with eight copies if each timeout is doubled. */
    free.backoff_factor = 0;
    EXPECT(coapace_parameters(m, s, e, cue, &free) == COAPACE_OK && free.ack_timeout_ms == 250 && free.max_retransmit == 4);
    EXPECT(free.backoff_factor == 3750);
    EXPECT(coapace_observed(m, s, e, &free, 100000, COAPACE_CANCELLED, cue) == COAPACE_OK);
    EXPECT(coapace_parameters(m, s, e, cue, &doubling) == COAPACE_OK && doubling.backoff_factor == 2000);
    EXPECT(doubling.max_retransmit == 7);
    /* After 250 + 500 ms there were two copies: the answer is ambiguous, and nothing is learnt. */
    EXPECT(coapace_observed(m, s, e, &doubling, 900000, COAPACE_ACKED, cue) == COAPACE_OK);
    EXPECT(coapace_observed(m, s, e, &doubling, 900000, COAPACE_ACKED, cue) == COAPACE_BAD_EXCHANGE);
    /* An exchange that was given up leaves its backoff, and the next one starts from there. */
    EXPECT(coapace_parameters(m, s, e, cue, &constant) == COAPACE_OK && constant.max_retransmit > 100);
    EXPECT(coapace_observed(m, s, e, &constant, 0, COAPACE_GIVEN_UP, cue) == COAPACE_OK && rto_us(&peer) == 60 * SECOND);
    constant.ack_timeout_ms = 4000000000;
    EXPECT(coapace_parameters(m, s, e, cue, &free) == COAPACE_OK && free.ack_timeout_ms == 60000 && free.max_retransmit == 4);
    EXPECT(coapace_observed(m, s, e, &constant, UINT64_MAX, COAPACE_ACKED, cue) == COAPACE_OK);
}

static void factors_of_the_parameter_form_have_bounds(void)
{
    struct peer peer = new_peer(COAPACE_FASOR);
    struct coapace_parameters parameters = {0, 0, 1000, 0};
    for (int i = 0; i < 60; i++) {
        answer(&peer, 1000);
    }
    EXPECT(coapace_parameters(&peer.mechanism, &peer.state, &peer.exchange, &peer.cue, &parameters) == COAPACE_OK);
    EXPECT(parameters.max_retransmit == UINT8_MAX); /* 256 timeouts of 50 ms are not 62 s */
    for (int i = 0; i < 3; i++) {
        /* Fast, then slow: the second timeout is 60 s. Then slow, then fast: it is shorter than the first. */
        parameters.backoff_factor = 0;
        EXPECT(coapace_parameters(&peer.mechanism, &peer.state, &peer.exchange, &peer.cue, &parameters) == COAPACE_OK);
        EXPECT(parameters.backoff_factor >= 1000 && parameters.backoff_factor <= 60000 && parameters.max_retransmit == 4);
        EXPECT(coapace_observed(&peer.mechanism, &peer.state, &peer.exchange, &parameters, 100 * SECOND, COAPACE_ACKED, &peer.cue) ==
               COAPACE_OK);
    }
}

int main(void)
{
    texts_and_numbers();
    null_pointers();
    memory_of_another_mechanism_is_refused();
    ends_of_a_band_belong_to_it();
    no_exchange_is_given_up_sooner_than_rfc_7252_would();
    a_silent_peer_gets_five_datagrams_in_45_s();
    nstart_is_1_or_the_window_or_what_the_program_says();
    tokens_carry_the_ordinal_of_copies();
    time_wraps();
    numbers_of_the_parameter_form();
    factors_of_the_parameter_form_have_bounds();
    printf("unit tests: %u failures\n", failed);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
