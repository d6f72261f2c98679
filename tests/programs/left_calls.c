/* Calls that are left on stacks which never go on: each coroutine is put in the place of one that is suspended in a call.
 * usage: left_calls COROUTINES */
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

static ucontext_t main_context, context;
static char stack[65536];

static int compare(const void *a, const void *b)
{
    (void)a, (void)b;
    swapcontext(&context, &main_context);
    return 0;
}

static void body(void)
{
    int values[2] = {2, 1};
    qsort(values, 2, sizeof *values, compare);
}

int main(int argc, char **argv)
{
    long left = 0, coroutines = argc > 1 ? atol(argv[1]) : 0;
    for (; left < coroutines; left++) {
        getcontext(&context);
        context.uc_stack.ss_sp = stack;
        context.uc_stack.ss_size = sizeof stack;
        makecontext(&context, body, 0);
        swapcontext(&main_context, &context);
    }
    printf("%ld\n", left);
}
