// Three processes append to a file, which each of them locks while it works.
// cause: serialising-lock
// group: forks of
// object: spool
// site: append_locked convoy_fcntl.c
// waker: in fcntl
#include <fcntl.h>
#include <sys/wait.h>
#include "planted.h"

enum { PROCESSES = 3, ROUNDS = 30 };

__attribute__((noinline)) static void append_locked(int spool)
{
    struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (fcntl(spool, F_SETLKW, &all))
        _exit(1);
    nap_ms(4);
    all.l_type = F_UNLCK;
    if (fcntl(spool, F_SETLK, &all))
        _exit(2);
}

int main(void)
{
    for (int i = 0; i < PROCESSES; i++)
        if (fork() == 0) {
            int spool = open("spool", O_CREAT | O_RDWR, 0600);
            for (int round = 0; round < ROUNDS; round++)
                append_locked(spool);
            _exit(0);
        }
    while (wait(NULL) > 0) {
    }
    return 0;
}
