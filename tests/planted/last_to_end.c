// Four threads are joined; one of them ends long after the others.
// cause: last-to-end
// group: worker
// site: run_threads planted.h
#include "planted.h"

static void *worker(void *self)
{
    nap_ms((long)self == 2 ? 300 : 60);
    return NULL;
}

int main(void)
{
    run_threads(4, worker);
    return 0;
}
