/* Calls one function very often, another one often, and a third rarely. Tells how many were made.
 * usage: budget HOW FILE [PLUGIN] */
#define _GNU_SOURCE
#include "trap.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* About 0.9 s. What is called often costs so little that a slow start of the machine does not make it dear. */
enum { BATCHES = 400, BEATS = 333, SPINS = 60, PARTS = 40, TINY = 400000000 };

static const char *file, *plugin;
static void (*volatile between)(void);

static void batches(long count)
{
    for (long batch = 0; batch < count; batch++) {
        for (long beat = 0; beat < BEATS; beat++) {
            for (long spin = 0; spin < SPINS; spin++)
                trap_spin(100);
            trap_add(batch, beat);
        }
        trap_empty();
        if (between && batch % 100 == 0)
            between();
    }
}

static void tell(const char *who, long count)
{
    char what[64];
    snprintf(what, sizeof what, "%strap_spin", who);
    trap_tell(file, what, count * BEATS * SPINS);
    snprintf(what, sizeof what, "%strap_add", who);
    trap_tell(file, what, count * BEATS);
    snprintf(what, sizeof what, "%strap_empty", who);
    trap_tell(file, what, count);
}

static void *work(void *argument)
{
    batches(BATCHES);
    return argument;
}

/* The same in parts, between which it sleeps. */
static void *work_and_sleep(void *argument)
{
    for (int part = 0; part < PARTS; part++) {
        batches(BATCHES / PARTS);
        usleep(2000 * (part % 4));
    }
    return argument;
}

static void run_threads(int count, void *(*work)(void *))
{
    pthread_t threads[count];
    for (int i = 0; i < count; i++)
        CHECK(pthread_create(&threads[i], NULL, work, NULL) == 0);
    for (int i = 0; i < count; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
}

static void load(void)
{
    void *handle = dlopen(plugin, RTLD_NOW);
    CHECK(handle);
    long (*work)(long) = (long (*)(long))dlsym(handle, "plugin_work");
    if (work)
        work(3);
    CHECK(dlclose(handle) == 0);
}

int main(int argc, char **argv)
{
    CHECK(argc >= 3);
    const char *how = argv[1];
    file = argv[2];
    if (!strcmp(how, "plain")) {
        batches(BATCHES);
        tell("", BATCHES);
    } else if (!strcmp(how, "alone")) {
        for (long i = 0; i < BATCHES * BEATS * SPINS; i++)
            trap_spin(100);
        trap_tell(file, "trap_spin", (long)BATCHES * BEATS * SPINS);
    } else if (!strcmp(how, "tiny")) {
        for (long i = 0; i < TINY; i++) {
            trap_add(i, 1);
            if (i % 64 == 0)
                trap_empty();
        }
        trap_tell(file, "trap_add", TINY);
        trap_tell(file, "trap_empty", TINY / 64);
    } else if (!strcmp(how, "threads")) {
        batches(BATCHES);
        run_threads(2, work);
        tell("", 3 * BATCHES);
    } else if (!strcmp(how, "crowd")) {
        run_threads(8, work_and_sleep);
        tell("", 8 * BATCHES);
    } else if (!strcmp(how, "forks")) {
        batches(BATCHES);
        pid_t child = fork();
        if (child == 0) {
            batches(2 * BATCHES);
            tell("child_", 2 * BATCHES);
            return 0;
        }
        CHECK(waitpid(child, NULL, 0) == child);
        tell("", BATCHES);
    } else if (!strcmp(how, "loads")) {
        plugin = argv[3];
        between = load;
        batches(BATCHES);
        tell("", BATCHES);
    } else {
        CHECK(!strcmp(how, "killed"));
        batches(BATCHES);
        tell("", BATCHES);
        kill(getpid(), SIGKILL);
    }
    return 0;
}
