// A journal is written for good beside the work that the run waits for.
// cause: syncing
// object: journal.log
// site: append journal_beside.c
// says: for the thread that gains most
// size: told
#include <fcntl.h>
#include "planted.h"

static long synced;

/* However fast the disk: so often that it takes a quarter of a second, or very often. */
enum { MOST = 100000 };

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

static void *keep_journal(void *journal)
{
    for (int record = 0; record < MOST && synced < 250000000; record++)
        append(*(int *)journal);
    return 0;
}

int main(void)
{
    pthread_t journals;
    int journal = open("journal.log", O_CREAT | O_WRONLY | O_APPEND, 0600);
    pthread_create(&journals, 0, keep_journal, &journal);
    /* For longer than the journal takes. */
    for (long end = now_ns() + 1000000000; now_ns() < end;)
        work(100000);
    pthread_join(journals, 0);
    close(journal);
    tell_size(synced);
    return 0;
}
