/* Calls of functions one of whose arguments says how much is to be done, with known arguments. */
#include "trap.h"

#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <string.h>
#include <unistd.h>

enum { LARGE = 1 << 20 };

static jmp_buf before;

static void jump(void *unused)
{
    (void)unused;
    longjmp(before, 1);
}

/* In a context of its own: a fork's child goes on in it. */
static void in_a_call(void *argument)
{
    char *from = argument, *to = from + LARGE;
    for (long i = 0; i < 200; i++)
        memcpy(to, from, (size_t)(i * 77 % 200) * 5000);
}

int main(void)
{
    char *memory = malloc(2 * LARGE);
    memset(memory, 1, 2 * LARGE);
    for (size_t i = 0; i < 1000; i++) {
        void *volatile piece = malloc(i);
        free(piece);
    }
    for (size_t i = 0; i < 3; i++) {
        void *volatile pieces = calloc(7, 1000 + i);
        free(pieces);
    }
    trap_call(in_a_call, memory);
    if (setjmp(before) == 0)
        trap_call(jump, NULL);

    int zeros = open("/dev/zero", O_RDONLY);
    CHECK(zeros >= 0);
    for (size_t i = 0; i < 50; i++)
        CHECK(read(zeros, memory, i % 10 * 1000) == (ssize_t)(i % 10 * 1000));
    CHECK(read(zeros, memory, (size_t)-1) != 0);

    struct pollfd ready = { zeros, POLLIN, 0 };
    for (int i = 0; i < 30; i++)
        CHECK(poll(&ready, 1, i % 3 == 0 ? -1 : i) == 1);
    puts("asked");
    return 0;
}
