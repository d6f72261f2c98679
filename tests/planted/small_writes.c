// One of three files is written byte by byte, the others in large pieces.
// cause: small-transfers
// object: audit.log
#include <fcntl.h>
#include "planted.h"

enum { LARGE = 1 << 20 };

__attribute__((noinline)) static void log_byte(int file)
{
    if (write(file, "x", 1) != 1)
        exit(1);
}

int main(void)
{
    static char large[LARGE];
    int audit = open("audit.log", O_CREAT | O_WRONLY, 0600);
    int data = open("data.bin", O_CREAT | O_WRONLY, 0600);
    int index = open("index.bin", O_CREAT | O_WRONLY, 0600);
    for (int round = 0; round < 4; round++)
        if (write(data, large, LARGE) != LARGE || write(index, large, LARGE / 2) != LARGE / 2)
            return 2;
    for (int record = 0; record < 400000; record++)
        log_byte(audit);
    return 0;
}
