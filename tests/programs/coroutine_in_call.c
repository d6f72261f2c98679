/* Two coroutines that are suspended inside a call of qsort each, for 100 ms, while their thread sleeps. */
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>
#include <unistd.h>

static ucontext_t main_context, contexts[2];
static char stacks[2][65536];
static int current;

static int compare(const void *a, const void *b)
{
    swapcontext(&contexts[current], &main_context);
    return *(const int *)a - *(const int *)b;
}

static void body(void)
{
    int values[2] = {2, 1};
    qsort(values, 2, sizeof *values, compare);
    printf("%d %d\n", values[0], values[1]);
}

static void resume(int which)
{
    current = which;
    swapcontext(&main_context, &contexts[which]);
}

int main(void)
{
    for (int i = 0; i < 2; i++) {
        getcontext(&contexts[i]);
        contexts[i].uc_stack.ss_sp = stacks[i];
        contexts[i].uc_stack.ss_size = sizeof stacks[i];
        contexts[i].uc_link = &main_context;
        makecontext(&contexts[i], body, 0);
    }
    resume(0);
    resume(1);
    usleep(100000);
    resume(0);
    usleep(100000);
    resume(1);
}
