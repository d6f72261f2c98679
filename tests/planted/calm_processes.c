// Four processes are started that load a part each, as much as the others; the parent waits for all.
// cause: none
#include <sys/wait.h>
#include "planted.h"

int main(void)
{
    for (int part = 0; part < 4; part++) {
        if (fork() == 0) {
            for (int done = 0; done < 300 + 20 * part; done += 20)
                usleep(20000);
            exit(0);
        }
    }
    while (wait(NULL) > 0) {
    }
}
