/* Ends in mid-run, in a way that leaves no time to write anything. The number of calls made is in
 * a shared file mapping at that moment.
 * usage: killed kill|fault|abort|_exit|quick_exit|exit|killall ROUNDS FILE */
#define _GNU_SOURCE
#include "trap.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static volatile long *made;

static void *endless(void *argument)
{
    volatile long *mine = argument;
    for (;;) {
        trap_leaf(1);
        ++*mine;
    }
    return NULL;
}

static void end(void *how)
{
    if (strcmp(how, "kill") == 0)
        kill(getpid(), SIGKILL);
    if (strcmp(how, "fault") == 0)
        *(volatile int *)8 = 1;
    if (strcmp(how, "abort") == 0)
        abort();
    if (strcmp(how, "_exit") == 0)
        _exit(43);
    if (strcmp(how, "quick_exit") == 0)
        quick_exit(44);
    if (strcmp(how, "exit") == 0)
        exit(45);
    if (strcmp(how, "killall") == 0) {
        pthread_t thread;
        for (long i = 1; i < 4; i++)
            pthread_create(&thread, NULL, endless, (void *)&made[i]);
        while (made[1] < 1000 || made[2] < 1000 || made[3] < 1000)
            usleep(1000);
        kill(getpid(), SIGKILL);
    }
}

int main(int argc, char **argv)
{
    CHECK(argc == 4);
    long rounds = atol(argv[2]);
    int file = open(argv[3], O_RDWR | O_CREAT, 0644);
    CHECK(file >= 0 && ftruncate(file, 4096) == 0);
    made = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    CHECK(made != MAP_FAILED);
    for (long i = 0; i < rounds; i++) {
        trap_empty();
        ++*made;
    }
    trap_call(end, argv[1]);
    return 1;
}
