// Each record is written for good.
// cause: syncing
// object: journal.log
// site: append journal.c
// size: told
#include <fcntl.h>
#include "planted.h"

static long synced;

/* However fast the disk: so often that it takes a third of a second, or very often. */
enum { MOST = 150000 };

__attribute__((noinline)) static void append(int journal)
{
    char record[64] = {0};
    if (write(journal, record, sizeof(record)) != sizeof(record))
        exit(1);
    long start = now_ns();
    if (fsync(journal))
        exit(2);
    synced += now_ns() - start;
}

int main(void)
{
    int journal = open("journal.log", O_CREAT | O_WRONLY | O_APPEND, 0600);
    for (int record = 0; record < MOST && synced < 300000000; record++)
        append(journal);
    close(journal);
    tell_size(synced);
    return 0;
}
