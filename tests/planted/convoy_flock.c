// Three processes take turns at a counter in a file, which each of them locks while it sleeps.
// cause: serialising-lock
// group: forks of
// object: counter.dat
// site: update_counter convoy_flock.c
// waker: in flock
#include <fcntl.h>
#include <sys/file.h>
#include <sys/wait.h>
#include "planted.h"

enum { PROCESSES = 3, ROUNDS = 30 };

__attribute__((noinline)) static void update_counter(int counter)
{
    if (flock(counter, LOCK_EX))
        _exit(1);
    nap_ms(4);
    if (flock(counter, LOCK_UN))
        _exit(2);
}

int main(void)
{
    for (int i = 0; i < PROCESSES; i++)
        if (fork() == 0) {
            int counter = open("counter.dat", O_CREAT | O_RDWR, 0600);
            for (int round = 0; round < ROUNDS; round++)
                update_counter(counter);
            _exit(0);
        }
    while (wait(NULL) > 0) {
    }
    return 0;
}
