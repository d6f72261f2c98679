// Four processes are started that load a part each; one has much more to load, and the parent waits for all.
// cause: last-to-end
// says: (last_process)
// says: usleep
#include <sys/wait.h>
#include "planted.h"

__attribute__((noinline)) static void load_part(int part)
{
    int ms = part == 1 ? 600 : 100;
    for (int done = 0; done < ms; done += 20)
        usleep(20000);
}

int main(void)
{
    for (int part = 0; part < 4; part++) {
        if (fork() == 0) {
            load_part(part);
            exit(0);
        }
    }
    while (wait(NULL) > 0) {
    }
}
