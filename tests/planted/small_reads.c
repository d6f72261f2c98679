// A file is read two bytes at a time; another one in large pieces.
// cause: small-transfers
// object: ledger.dat
// says: most of 2 to 3
#include <fcntl.h>
#include "planted.h"

enum { SIZE = 700000 };

int main(void)
{
    static char all[SIZE];
    char pair[2];
    int ledger = open("ledger.dat", O_CREAT | O_RDWR, 0600);
    if (write(ledger, all, SIZE) != SIZE || lseek(ledger, 0, SEEK_SET))
        return 1;
    while (read(ledger, pair, 2) == 2) {
    }
    int zero = open("/dev/zero", O_RDONLY);
    for (int piece = 0; piece < 8; piece++)
        if (read(zero, all, SIZE) != SIZE)
            return 2;
    return 0;
}
