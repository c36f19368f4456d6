/* The startup code of a Cortex-M3, from reset to main. Its debugger, here QEMU, offers Arm semihosting: files, the console
 * and arguments are those of the host. newlib's librdimon has all of that but the arguments and a startup for Cortex-M. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { SYS_WRITE0 = 0x04, SYS_GET_CMDLINE = 0x15, SYS_EXIT = 0x18, ADP_STOPPED_RUN_TIME_ERROR = 0x20023 };
enum { LINE_SIZE = 16384, ARGUMENTS = 512 };

extern unsigned char stack_top[], data_kept[], data_start[], data_end[], bss_start[], bss_end[];

int main(int argc, char *argv[]);
void initialise_monitor_handles(void);
void reset(void);

static int call(int operation, const void *argument)
{
    register int r0 __asm__("r0") = operation;
    register const void *r1 __asm__("r1") = argument;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}

/* Handles every exception but reset. Nothing here uses exceptions, so each is a fault. */
static void fault(void)
{
    call(SYS_WRITE0, "fault\n");
    call(SYS_EXIT, (const void *)ADP_STOPPED_RUN_TIME_ERROR);
    for (;;) {
    }
}

/* Splits the command line at its spaces, and returns the number of words. */
static int arguments(char *argv[])
{
    static char line[LINE_SIZE];
    struct {
        char *line;
        size_t size;
    } block = {line, sizeof line};
    int argc = 0;
    if (call(SYS_GET_CMDLINE, &block) != 0) {
        fault();
    }
    for (char *word = strtok(line, " "); word != NULL; word = strtok(NULL, " ")) {
        if (argc == ARGUMENTS) {
            fault();
        }
        argv[argc++] = word;
    }
    return argc;
}

void reset(void)
{
    static char *argv[ARGUMENTS + 1];
    memcpy(data_start, data_kept, (size_t)(data_end - data_start));
    memset(bss_start, 0, (size_t)(bss_end - bss_start));
    initialise_monitor_handles();
    exit(main(arguments(argv), argv));
}

/* The beginning of the vector table: stack, reset, and the 14 exceptions of the core. */
__attribute__((section(".vectors"), used)) static void (*const vectors[16])(void) = {
    (void (*)(void))stack_top, reset, fault, fault, fault, fault, fault, fault,
    fault, fault, fault, fault, fault, fault, fault, fault,
};
