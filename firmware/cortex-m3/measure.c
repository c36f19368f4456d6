/* Measures the calls of vectors.c to the library. The linker's --wrap puts these functions between them. Each call prints
 * "measured CALL INSTRUCTIONS BYTES", where BYTES are those of the stack.
 *
 * QEMU has to run with -icount shift=10. Every instruction then takes 1024 ns of the board's time, and SysTick, which counts
 * every 40 ns, tells their number. The stack below a call is painted before it, and examined after it. */
#include <stdint.h>
#include <stdio.h>

#include "coapace.h"

enum { TICK_NS = 40, INSTRUCTION_NS = 1024, PAINTED_WORDS = 256 };
static const uint32_t PAINT = 0xc0a9ace5;

enum { ENABLED_ON_THE_CLOCK_OF_THE_CPU = 5, LONGEST = 0xffffff };
static volatile struct {
    uint32_t control, reload, current;
} *const systick = (void *)0xe000e010;

/* A call with five words of arguments. */
typedef int call(const void *, void *, void *, const void *, void *);
typedef void (*function)(void);

struct cost {
    uint32_t ticks, stack_bytes;
    int status;
};

/* Makes a call and measures it. The ticks include the passing of arguments. */
__attribute__((noinline)) static struct cost made(call *called, const void *a, void *b, void *c, const void *d, void *e)
{
    struct cost cost;
    volatile uint32_t *sp;
    __asm__ volatile("mov %0, sp" : "=r"(sp));
    for (int word = 1; word <= PAINTED_WORDS; word++) {
        sp[-word] = PAINT;
    }
    uint32_t before = systick->current;
    cost.status = called(a, b, c, d, e);
    cost.ticks = (before - systick->current) & LONGEST;
    int deepest = PAINTED_WORDS;
    while (deepest > 0 && sp[-deepest] == PAINT) {
        deepest--;
    }
    cost.stack_bytes = (uint32_t)deepest * sizeof *sp;
    return cost;
}

static int return_at_once(const void *a, void *b, void *c, const void *d, void *e)
{
    (void)a, (void)b, (void)c, (void)d, (void)e;
    return 0;
}

/* Makes a call of the library and prints its cost. */
static int measured(const char *name, function called, const void *a, void *b, void *c, const void *d, void *e)
{
    systick->reload = LONGEST;
    systick->current = 0; /* any value starts it again */
    systick->control = ENABLED_ON_THE_CLOCK_OF_THE_CPU;
    struct cost least = made(return_at_once, a, b, c, d, e);
    struct cost cost = made((call *)called, a, b, c, d, e);
    /* return_at_once has two instructions: it sets the status, and returns. */
    uint32_t more = ((cost.ticks - least.ticks) * TICK_NS + INSTRUCTION_NS / 2) / INSTRUCTION_NS;
    printf("measured %s %lu %lu\n", name, (unsigned long)more + 2, (unsigned long)cost.stack_bytes);
    return cost.status;
}

int __real_coapace_on_start(void);
int __real_coapace_on_retransmit(void);
int __real_coapace_on_end(void);

int __wrap_coapace_on_start(const void *mechanism, void *state, void *exchange, const void *cue, void *timeout_us)
{
    return measured("on_start", (function)__real_coapace_on_start, mechanism, state, exchange, cue, timeout_us);
}

int __wrap_coapace_on_retransmit(const void *mechanism, void *state, void *exchange, const void *cue, void *timeout_us)
{
    function called = (function)__real_coapace_on_retransmit;
    return measured("on_retransmit", called, mechanism, state, exchange, cue, timeout_us);
}

int __wrap_coapace_on_end(const void *mechanism, void *state, void *exchange, const void *outcome, void *cue)
{
    return measured("on_end", (function)__real_coapace_on_end, mechanism, state, exchange, outcome, cue);
}
