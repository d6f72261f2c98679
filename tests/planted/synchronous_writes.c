// A ledger is opened so that each write waits for the disk; no call asks for that.
// (On a fast disk, what so many small writes take on the processor stands out, too.)
// cause: syncing
// also: small-transfers
// object: ledger.dat
// site: append synchronous_writes.c
// says: of write
#include <fcntl.h>
#include "planted.h"

static long written;

/* However fast the disk: so often that it takes a third of a second, or very often. */
enum { MOST = 50000 };

__attribute__((noinline)) static void append(int ledger)
{
    char record[200] = {0};
    long start = now_ns();
    if (write(ledger, record, sizeof(record)) != sizeof(record))
        exit(1);
    written += now_ns() - start;
}

int main(void)
{
    int ledger = open("ledger.dat", O_CREAT | O_WRONLY | O_TRUNC | O_SYNC, 0600);
    for (int record = 0; record < MOST && written < 300000000; record++)
        append(ledger);
    close(ledger);
    return 0;
}
