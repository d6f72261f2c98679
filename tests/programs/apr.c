/* Threads of the Apache Portable Runtime; with WRAPS, all begin in a routine of the program's own, as Apache's do. */
#include <apr_general.h>
#include <apr_thread_proc.h>
#include <stdio.h>

static void *APR_THREAD_FUNC listener(apr_thread_t *thread, void *data)
{
    puts(data);
    apr_thread_exit(thread, APR_SUCCESS);
    return NULL;
}

static void *APR_THREAD_FUNC worker(apr_thread_t *thread, void *data)
{
    (void)thread;
    puts(data);
    return NULL;
}

#ifdef WRAPS
struct given {
    apr_thread_start_t function;
    char *data;
};

static void *APR_THREAD_FUNC start(apr_thread_t *thread, void *data)
{
    struct given *given = data;
    return given->function(thread, given->data);
}
#endif

static void run(apr_thread_start_t function, char *data, apr_pool_t *pool)
{
    apr_thread_t *thread;
    apr_status_t status;
#ifdef WRAPS
    struct given given = {function, data};
    function = start;
    data = (char *)&given;
#endif
    if (apr_thread_create(&thread, NULL, function, data, pool) == APR_SUCCESS)
        apr_thread_join(&status, thread);
}

int main(void)
{
    apr_pool_t *pool;
    apr_initialize();
    apr_pool_create(&pool, NULL);
    run(listener, "listens", pool);
    run(worker, "works", pool);
    apr_terminate();
    return 0;
}
