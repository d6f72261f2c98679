// Files are written in large pieces, and synced once.
// cause: none
#include <fcntl.h>
#include "planted.h"

int main(void)
{
    static char large[1 << 16];
    int file = open("out.bin", O_CREAT | O_WRONLY, 0600);
    for (int piece = 0; piece < 64; piece++)
        if (write(file, large, sizeof(large)) != sizeof(large))
            return 1;
    work(60000000);
    close(file);
    return 0;
}
