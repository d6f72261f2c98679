// A file is copied in large pieces, and checked.
// cause: none
#include <fcntl.h>
#include "planted.h"

int main(void)
{
    static unsigned char piece[1 << 17];
    unsigned long sum = 0;
    int from = open("from.bin", O_CREAT | O_RDWR, 0600), to = open("to.bin", O_CREAT | O_WRONLY, 0600);
    for (int i = 0; i < 100; i++)
        if (write(from, piece, sizeof(piece)) != sizeof(piece))
            return 1;
    lseek(from, 0, SEEK_SET);
    for (long part; (part = read(from, piece, sizeof(piece))) > 0;) {
        for (long at = 0; at < part; at++)
            sum += piece[at] ^ work(8);
        if (write(to, piece, (size_t)part) != part)
            return 2;
    }
    return sum == 1;
}
