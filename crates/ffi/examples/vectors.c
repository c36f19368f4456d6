/* vectors FILE...: plays the vectors of vectors/README.md through the library, and compares its timeouts to the microsecond.
 *
 * Prints a line for every file and for every difference. Exits with 0 if at least one run was played and all agree. Runs of
 * mechanisms that the library was built without are counted and left out. It uses integers alone, so it runs on a
 * microcontroller, too. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "coapace.h"

enum { LINE_SIZE = 512, FIELDS = 16, TRANSMISSIONS = 64, EXCHANGES = 80 };

enum column { AT, EVENT, DRAW, ANSWERED, TIMEOUT, RTO, NEXT, WINDOW, EXCHANGE, COLUMNS };

static const char *const TITLES[COLUMNS] = {"at_ms", "event", "draw", "answered", "timeout_ms", "rto_ms", "next_ms",
                                            "window", "exchange"};

/* An exchange under way. */
struct open {
    bool is_open;
    struct coapace_exchange exchange;
    uint64_t departed_us[TRANSMISSIONS];
    unsigned retransmits;
};

/* A run: one mechanism, one destination, and the exchanges to it. */
struct run {
    struct coapace_mechanism mechanism;
    COAPACE_STATE(COAPACE_STATE_SIZE_MAX) state;
    struct open open[EXCHANGES];
    uint16_t outstanding;
    int place[COLUMNS]; /* the places of the columns, from the header; -1 for a column that it does not have */
    bool has_header;
    bool left_out;
};

struct count {
    unsigned files, runs, left_out, steps, differences;
};

static struct run run;
static struct count total;
static const char *file_name;
static unsigned line_number;

static void differs(const char *what)
{
    printf("%s:%u: %s\n", file_name, line_number, what);
    total.differences++;
}

/* Returns whether a status is COAPACE_OK, and counts a difference if not. */
static bool works(int status)
{
    if (status != COAPACE_OK) {
        differs(coapace_strerror(status));
    }
    return status == COAPACE_OK;
}

/* Reads a decimal times 10 to the power of `places`. Further places have to be zero. */
static bool read_decimal(const char *text, unsigned places, uint64_t *value)
{
    uint64_t read = 0;
    bool point = false;
    if (*text < '0' || *text > '9') {
        return false;
    }
    for (; *text != '\0'; text++) {
        if (*text == '.' && !point) {
            point = true;
        } else if (*text < '0' || *text > '9') {
            return false;
        } else if (!point || places > 0) {
            places -= point;
            read = 10 * read + (uint64_t)(*text - '0');
        } else if (*text != '0') {
            return false;
        }
    }
    while (places-- > 0) {
        read *= 10;
    }
    *value = read;
    return true;
}

/* Compares a text in milliseconds with microseconds. `tolerated` is 0, or a divisor: 1/`tolerated` of the expected time. */
static void compare(enum column column, const char *expected, uint64_t got_us, uint64_t tolerated)
{
    uint64_t expected_us;
    if (!read_decimal(expected, 3, &expected_us)) {
        differs("a number was expected");
        return;
    }
    uint64_t apart = expected_us > got_us ? expected_us - got_us : got_us - expected_us;
    if (apart > 1 + (tolerated > 0 ? expected_us / tolerated : 0)) {
        /* printf of a small C library cannot print 64 bits. */
        printf("%s:%u: %s is %lu.%03u, not %s\n", file_name, line_number, TITLES[column],
               (unsigned long)(got_us / 1000), (unsigned)(got_us % 1000), expected);
        total.differences++;
    }
}

/* Begins a run of another mechanism, with a new state. */
static void begin(const char *mechanism)
{
    memset(&run, 0, sizeof run);
    int status = coapace_parse(&run.mechanism, mechanism);
    run.left_out = status == COAPACE_UNKNOWN_MECHANISM || status == COAPACE_NO_PARAMETERS;
    if (run.left_out) {
        total.left_out++;
    } else if (works(status) && works(coapace_state_init(&run.mechanism, &run.state, sizeof run.state))) {
        total.runs++;
    }
}

static void read_header(char *fields[], int count)
{
    for (int column = 0; column < COLUMNS; column++) {
        run.place[column] = -1;
        for (int place = 0; place < count; place++) {
            if (strcmp(fields[place], TITLES[column]) == 0) {
                run.place[column] = place;
            }
        }
        if (run.place[column] < 0 && column != NEXT && column != WINDOW && column != EXCHANGE) {
            differs("the header lacks a column");
        }
    }
    run.has_header = true;
}

/* Reads the facts of an acknowledgement. `answered` counts only if the mechanism has a marking. */
static bool read_sample(uint64_t now_us, const struct open *open, const char *answered, struct coapace_sample *sample)
{
    struct coapace_limits limits;
    uint64_t ordinal;
    sample->since_first_us = now_us - open->departed_us[0];
    sample->since_last_us = now_us - open->departed_us[open->retransmits];
    sample->retransmits = (uint8_t)open->retransmits;
    if (!works(coapace_limits(&run.mechanism, &run.state, &limits))) {
        return false;
    }
    if (*answered != '\0' && limits.marking != COAPACE_MARKING_NONE) {
        if (!read_decimal(answered, 0, &ordinal) || ordinal > open->retransmits) {
            differs("it answers a transmission that was not made");
            return false;
        }
        sample->has_answered = 1;
        sample->answered = (uint8_t)ordinal;
        sample->since_answered_us = now_us - open->departed_us[ordinal];
    }
    return true;
}

static void step(char *fields[], int count)
{
    const char *text[COLUMNS];
    struct coapace_cue cue = {0, 0, 1};
    struct coapace_outcome outcome;
    struct coapace_gauges gauges;
    struct coapace_limits limits;
    uint64_t draw = 0, timeout_us = 0, number = 0, window = 0;
    struct open *open;
    bool armed = false, starts;

    for (int column = 0; column < COLUMNS; column++) {
        int place = run.place[column];
        text[column] = place >= 0 && place < count ? fields[place] : "";
    }
    if (!read_decimal(text[AT], 3, &cue.now_us) || (*text[DRAW] != '\0' && !read_decimal(text[DRAW], 9, &draw))) {
        differs("at_ms or draw is no number");
        return;
    }
    /* To the nearest multiple of 2^-32. */
    cue.draw = (uint32_t)(((draw << 32) + 500000000u) / 1000000000u);

    if ((*text[EXCHANGE] != '\0' && !read_decimal(text[EXCHANGE], 0, &number)) || number >= EXCHANGES) {
        differs("exchange is no number, or too large");
        return;
    }
    open = &run.open[number];
    starts = strcmp(text[EVENT], "start") == 0;
    if (open->is_open == starts) {
        differs(starts ? "the exchange is open" : "the exchange is not open");
        return;
    }
    run.outstanding += starts;
    cue.outstanding = run.outstanding;

    memset(&outcome, 0, sizeof outcome);
    if (starts) {
        open->is_open = true;
        open->retransmits = 0;
        open->departed_us[0] = cue.now_us;
        armed = works(coapace_on_start(&run.mechanism, &run.state, &open->exchange, &cue, &timeout_us));
    } else if (strcmp(text[EVENT], "timeout") == 0 && open->retransmits + 1 < TRANSMISSIONS) {
        open->departed_us[++open->retransmits] = cue.now_us;
        armed = works(coapace_on_retransmit(&run.mechanism, &run.state, &open->exchange, &cue, &timeout_us));
    } else if (strcmp(text[EVENT], "ack") == 0) {
        outcome.end = COAPACE_ACKED;
        if (!read_sample(cue.now_us, open, text[ANSWERED], &outcome.sample)) {
            return;
        }
    } else if (strcmp(text[EVENT], "reset") == 0) {
        outcome.end = COAPACE_RESET;
    } else if (strcmp(text[EVENT], "giveup") == 0) {
        outcome.end = COAPACE_GIVEN_UP;
    } else {
        differs("no such event");
        return;
    }
    if (outcome.end != 0) {
        works(coapace_on_end(&run.mechanism, &run.state, &open->exchange, &outcome, &cue));
        open->is_open = false;
        run.outstanding--;
    }

    if (armed != (*text[TIMEOUT] != '\0')) {
        differs(armed ? "a timeout is armed" : "no timeout is armed");
    } else if (armed) {
        compare(TIMEOUT, text[TIMEOUT], timeout_us, 0);
    }
    if (works(coapace_gauges(&run.mechanism, &run.state, &gauges))) {
        compare(RTO, text[RTO], gauges.rto_us, 0);
    }
    if (*text[NEXT] != '\0' && works(coapace_limits(&run.mechanism, &run.state, &limits))) {
        uint64_t next_us = limits.next_confirmable_us > cue.now_us ? limits.next_confirmable_us - cue.now_us : 0;
        compare(NEXT, text[NEXT], next_us, 100000);
    }
    if (*text[WINDOW] != '\0' && works(coapace_limits(&run.mechanism, &run.state, &limits))) {
        if (!read_decimal(text[WINDOW], 0, &window) || limits.has_nstart == 0 || limits.nstart != window) {
            differs("the window is another");
        }
    }
    total.steps++;
}

/* Splits a line at its commas. */
static int split(char *line, char *fields[])
{
    int count = 0;
    while (line != NULL && count < FIELDS) {
        char *comma = strchr(line, ',');
        fields[count++] = line;
        if (comma != NULL) {
            *comma++ = '\0';
        }
        line = comma;
    }
    return count;
}

static void play(FILE *file)
{
    static const char MECHANISM[] = "# mechanism ";
    static char line[LINE_SIZE];
    char *fields[FIELDS];
    bool begun = false;
    for (line_number = 1; fgets(line, sizeof line, file) != NULL; line_number++) {
        if (strchr(line, '\n') == NULL && !feof(file)) {
            differs("the line is too long");
            return;
        }
        line[strcspn(line, "\r\n")] = '\0';
        if (strncmp(line, MECHANISM, strlen(MECHANISM)) == 0) {
            begin(line + strlen(MECHANISM));
            begun = true;
        } else if (!begun) {
            differs("a line before the first mechanism");
            return;
        } else if (!run.left_out) {
            int count = split(line, fields);
            if (run.has_header) {
                step(fields, count);
            } else {
                read_header(fields, count);
            }
        }
    }
}

int main(int argc, char *argv[])
{
    if (strcmp(coapace_version(), COAPACE_VERSION) != 0) {
        printf("the library is %s, the header " COAPACE_VERSION "\n", coapace_version());
        return EXIT_FAILURE;
    }
    for (int i = 1; i < argc; i++) {
        struct count before = total;
        FILE *file = fopen(argv[i], "r");
        file_name = argv[i];
        if (file == NULL) {
            printf("%s: cannot be opened\n", file_name);
            total.differences++;
            continue;
        }
        play(file);
        fclose(file);
        total.files++;
        printf("%s: %u runs, %u steps, %u left out, %u differences\n", file_name, total.runs - before.runs,
               total.steps - before.steps, total.left_out - before.left_out, total.differences - before.differences);
    }
    printf("%u files: %u runs, %u steps, %u left out, %u differences\n", total.files, total.runs, total.steps,
           total.left_out, total.differences);
    return total.steps > 0 && total.differences == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
