// Calls a function of a few nanoseconds again and again, on a processor that another process computes on as well.
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
    int processor = 0;
    while (!CPU_ISSET(processor, &set)) processor++;
    CPU_ZERO(&set);
    CPU_SET(processor, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0) return 1;
    pid_t other = fork();
    if (other == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) __asm__ volatile("");
    }
    int sum = 0;
    for (int i = 0; i < 12000000; i++) sum += abs(-(i & 1));
    kill(other, SIGKILL);
    waitpid(other, NULL, 0);
    printf("%d\n", sum);
    return 0;
}
