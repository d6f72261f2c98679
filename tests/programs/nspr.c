/* Threads of the Netscape Portable Runtime. */
#include <nspr.h>
#include <stdio.h>

static void listener(void *data) { puts(data); }

static void worker(void *data) { puts(data); }

static void run(void (*function)(void *), char *data)
{
    PRThread *thread = PR_CreateThread(PR_USER_THREAD, function, data, PR_PRIORITY_NORMAL, PR_GLOBAL_THREAD,
                                       PR_JOINABLE_THREAD, 0);
    if (thread)
        PR_JoinThread(thread);
}

int main(void)
{
    run(listener, "listens");
    run(worker, "works");
    return PR_Cleanup();
}
