// A file of settings is opened and read again for each item.
// cause: looked-up-again
// group: main of reread_settings
// object: limits.conf
// site: limit_of reread_settings.c
// says: opens
#include <fcntl.h>
#include "planted.h"

enum { ITEMS = 60000, BYTES = 3000 };

__attribute__((noinline)) static int limit_of(int item)
{
    static char text[BYTES];
    int settings = open("limits.conf", O_RDONLY);
    if (read(settings, text, BYTES) != BYTES)
        exit(1);
    close(settings);
    return text[item % BYTES];
}

int main(void)
{
    static char text[BYTES];
    int file = open("limits.conf", O_CREAT | O_WRONLY, 0600);
    if (write(file, text, BYTES) != BYTES)
        return 1;
    close(file);
    for (int item = 0; item < ITEMS; item++) {
        limit_of(item);
        work(500);
    }
    return 0;
}
