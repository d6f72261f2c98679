/* Waits with known causes. The argument says which. */
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 300, EARLY_ROUNDS = 10000, HOLDERS = 4 };

pthread_mutex_t stats_mu = PTHREAD_MUTEX_INITIALIZER, other_mu = PTHREAD_MUTEX_INITIALIZER, turn_mu = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t turn_changed = PTHREAD_COND_INITIALIZER;
pthread_rwlock_t table_lock = PTHREAD_RWLOCK_INITIALIZER;
sem_t first_turn, second_turn;
static int turn, pair[2], back[2];
static long total;

static void nap(long us)
{
    struct timespec time = {0, us * 1000};
    nanosleep(&time, NULL);
}

/* A convoy: everybody sleeps with one of two locks held. */
__attribute__((noinline)) static void update_stats(void)
{
    pthread_mutex_lock(&stats_mu);
    total++;
    nap(1000);
    pthread_mutex_unlock(&stats_mu);
}

static void *holder(void *argument)
{
    for (int round = 0; round < 50; round++) {
        update_stats();
        pthread_mutex_lock(&other_mu);
        total++;
        pthread_mutex_unlock(&other_mu);
    }
    return argument;
}

/* Ping-pong: two threads in turns. */
static void *by_condition(void *argument)
{
    int own = argument != NULL;
    for (int round = 0; round < ROUNDS; round++) {
        pthread_mutex_lock(&turn_mu);
        while (turn != own)
            pthread_cond_wait(&turn_changed, &turn_mu);
        turn = !own;
        pthread_cond_signal(&turn_changed);
        pthread_mutex_unlock(&turn_mu);
    }
    return NULL;
}

static void *by_semaphore(void *argument)
{
    for (int round = 0; round < ROUNDS; round++) {
        sem_wait(argument ? &second_turn : &first_turn);
        sem_post(argument ? &first_turn : &second_turn);
    }
    return NULL;
}

static _Atomic int waits_begun;

static void *woken_early(void *argument)
{
    for (int round = 0; round < EARLY_ROUNDS; round++) {
        waits_begun++;
        sem_wait(&first_turn);
    }
    return argument;
}

/* Wakes the other thread at any moment of its way to sleep, on another processor. */
static void *wakes_early(void *argument)
{
    for (int round = 0; round < EARLY_ROUNDS; round++) {
        while (waits_begun <= round)
            ;
        for (volatile int spin = rand() % 10000; spin > 0; spin--)
            ;
        sem_post(&first_turn);
    }
    return argument;
}

static void *by_descriptor(void *argument)
{
    char byte = 0;
    int from = argument ? pair[0] : back[0], to = argument ? back[1] : pair[1];
    if (!argument && write(to, &byte, 1) != 1)
        exit(2);
    for (int round = 0; round < ROUNDS; round++)
        if (read(from, &byte, 1) != 1 || (write(to, &byte, 1) != 1 && round < ROUNDS - 1))
            exit(3);
    return NULL;
}

/* By a word of the program's own, without the C library's locks. */
atomic_int turn_word;

static void *by_futex(void *argument)
{
    int own = argument != NULL;
    for (int round = 0; round < ROUNDS; round++) {
        while (turn_word != own)
            syscall(SYS_futex, &turn_word, FUTEX_WAIT_PRIVATE, !own, NULL, NULL, 0);
        turn_word = !own;
        syscall(SYS_futex, &turn_word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    }
    return NULL;
}

/* What waits for something that never comes, until its time is over. */
pthread_mutex_t never_mu = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t never_comes = PTHREAD_COND_INITIALIZER;

static void *timed(void *argument)
{
    int ends[2];
    sem_t never_posted;
    if (pipe(ends) || sem_init(&never_posted, 0, 0))
        exit(10);
    for (int round = 0; round < ROUNDS; round++) {
        struct pollfd nothing = {.fd = ends[0], .events = POLLIN};
        if (poll(&nothing, 1, 1))
            exit(11);
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += 200000;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_mutex_lock(&never_mu);
        while (!pthread_cond_timedwait(&never_comes, &never_mu, &until)) {
        }
        pthread_mutex_unlock(&never_mu);
        until.tv_nsec += 200000;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        while (!sem_timedwait(&never_posted, &until)) {
        }
    }
    return argument;
}

static void *writer(void *argument)
{
    for (int round = 0; round < 50; round++) {
        pthread_rwlock_wrlock(&table_lock);
        nap(1000);
        pthread_rwlock_unlock(&table_lock);
    }
    return argument;
}

static void *sleeper(void *argument)
{
    for (int round = 0; round < ROUNDS; round++)
        nap(100);
    return argument;
}

static void *busy(void *argument)
{
    for (int round = 0; round < ROUNDS * 20; round++) {
        int null = open("/dev/null", O_WRONLY);
        if (write(null, "", 1) != 1)
            exit(4);
        close(null);
    }
    return argument;
}

/* Acquisitions of which each one has to wait, twice: the lock is free only when the other thread has been seen to sleep. */
enum { CONTENDED = 25 };
pthread_mutex_t known_mu = PTHREAD_MUTEX_INITIALIZER;
static atomic_int waiting_tid;

static void *contending(void *argument)
{
    waiting_tid = (int)syscall(SYS_gettid);
    pthread_mutex_lock(&known_mu);
    total++;
    pthread_mutex_unlock(&known_mu);
    return argument;
}

/* Whether the thread sleeps in futex(&known_mu, ...): of one that runs, or is about to, the kernel says `running`. */
static int sleeps(int tid)
{
    char path[64];
    unsigned long address;
    int number, fields;
    snprintf(path, sizeof path, "/proc/self/task/%d/syscall", tid);
    FILE *file = fopen(path, "r");
    if (!file)
        exit(7);
    fields = fscanf(file, "%d %lx", &number, &address);
    fclose(file);
    return fields == 2 && number == SYS_futex && address == (unsigned long)&known_mu;
}

/* How often the thread has given up its processor. */
static long waits_of(int tid)
{
    char path[64], line[256];
    long waits = -1;
    snprintf(path, sizeof path, "/proc/self/task/%d/status", tid);
    FILE *file = fopen(path, "r");
    if (!file)
        exit(9);
    while (waits < 0 && fgets(line, sizeof line, file))
        sscanf(line, "voluntary_ctxt_switches: %ld", &waits);
    fclose(file);
    return waits;
}

static void contend(void)
{
    for (int round = 0; round < CONTENDED; round++) {
        pthread_t thread;
        waiting_tid = 0;
        pthread_mutex_lock(&known_mu);
        pthread_create(&thread, NULL, contending, NULL);
        long before = -1;
        for (int time = 0; time < 2; time++) {
            /* (A thread that has been woken seems to sleep until a processor has heard of it.) */
            while (!waiting_tid || !sleeps(waiting_tid) || waits_of(waiting_tid) <= before)
                nap(100);
            before = waits_of(waiting_tid);
            /* The first time for nothing. */
            if (time == 0 && syscall(SYS_futex, &known_mu, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0) != 1)
                exit(8);
        }
        pthread_mutex_unlock(&known_mu);
        pthread_join(thread, NULL);
    }
}

static void run(int count, void *(*first)(void *), void *(*others)(void *))
{
    pthread_t threads[HOLDERS];
    for (int i = 0; i < count; i++)
        pthread_create(&threads[i], NULL, i ? others : first, i ? &turn : NULL);
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
}

/* Both ends of a connection through the loopback device, in `ends`. */
static void connect_to_self(int ends[2])
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof(address);
    int listening = socket(AF_INET, SOCK_STREAM, 0);
    if (bind(listening, (void *)&address, length) || listen(listening, 1) ||
        getsockname(listening, (void *)&address, &length))
        exit(5);
    ends[1] = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(ends[1], (void *)&address, length))
        exit(6);
    ends[0] = accept(listening, NULL, NULL);
    close(listening);
}

/* The same by a path. Then both ends are kept until standard input ends, since who looks for a name has to see them open. */
static void turns_by_name(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "turns.sock"};
    int listening = socket(AF_UNIX, SOCK_STREAM, 0), *ends[] = {pair, back};
    unlink(address.sun_path);
    if (bind(listening, (void *)&address, sizeof(address)) || listen(listening, 2))
        exit(12);
    for (int i = 0; i < 2; i++) {
        ends[i][1] = socket(AF_UNIX, SOCK_STREAM, 0);
        if (connect(ends[i][1], (void *)&address, sizeof(address)))
            exit(13);
        ends[i][0] = accept(listening, NULL, NULL);
    }
    run(2, by_descriptor, by_descriptor);
    getchar();
}

/* The same by a pipe that has a name. */
static void turns_by_fifo(void)
{
    int *ends[] = {pair, back};
    const char *names[] = {"there.fifo", "back.fifo"};
    for (int i = 0; i < 2; i++) {
        unlink(names[i]);
        if (mkfifo(names[i], 0600))
            exit(14);
        ends[i][0] = open(names[i], O_RDONLY | O_NONBLOCK);
        ends[i][1] = open(names[i], O_WRONLY);
        if (ends[i][0] < 0 || ends[i][1] < 0 || fcntl(ends[i][0], F_SETFL, 0))
            exit(15);
    }
    run(2, by_descriptor, by_descriptor);
}

/* Processes that take one lock, which each has at another address. */
static void between_processes(void)
{
    FILE *file = tmpfile();
    if (!file || ftruncate(fileno(file), 4096))
        exit(16);
    for (int process = -1; process < 3; process++) {
        if (process >= 0 && fork())
            continue;
        /* The first place that is free is another one for each. */
        mmap(NULL, 4096 * (process + 2), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        pthread_mutex_t *mutex = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0);
        if (mutex == MAP_FAILED)
            exit(17);
        if (process < 0) {
            pthread_mutexattr_t shared;
            pthread_mutexattr_init(&shared);
            pthread_mutexattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
            pthread_mutex_init(mutex, &shared);
            continue;
        }
        for (int round = 0; round < 50; round++) {
            pthread_mutex_lock(mutex);
            nap(1000);
            pthread_mutex_unlock(mutex);
            /* Otherwise it may have the lock again before another wakes up, each time, and never wait. */
            nap(200);
        }
        _exit(0);
    }
    while (wait(NULL) > 0)
        ;
}

static void *never_ends(void *argument)
{
    for (;;)
        nap(900000);
    return argument;
}

static void *ends_process(void *argument)
{
    nap(100000);
    exit(argument ? 1 : 0);
}

/* The first thread waits for one that is still there when another one ends the process. */
static void join_in_vain(void)
{
    pthread_t awaited, other;
    pthread_create(&awaited, NULL, never_ends, NULL);
    pthread_create(&other, NULL, ends_process, NULL);
    pthread_join(awaited, NULL);
}

int main(int count, char **arguments)
{
    const char *what = count > 1 ? arguments[1] : "";
    if (!strcmp(what, "convoy")) {
        run(HOLDERS, holder, holder);
    } else if (!strcmp(what, "processes")) {
        between_processes();
    } else if (!strcmp(what, "contended")) {
        contend();
    } else if (!strcmp(what, "condition")) {
        run(2, by_condition, by_condition);
    } else if (!strcmp(what, "semaphore")) {
        sem_init(&first_turn, 0, 1);
        sem_init(&second_turn, 0, 0);
        run(2, by_semaphore, by_semaphore);
    } else if (!strcmp(what, "in vain")) {
        join_in_vain();
    } else if (!strcmp(what, "early")) {
        sem_init(&first_turn, 0, 0);
        run(2, wakes_early, woken_early);
    } else if (!strcmp(what, "pipe")) {
        if (pipe(pair) || pipe(back))
            return 1;
        run(2, by_descriptor, by_descriptor);
    } else if (!strcmp(what, "socket")) {
        connect_to_self(pair);
        connect_to_self(back);
        run(2, by_descriptor, by_descriptor);
    } else if (!strcmp(what, "name")) {
        turns_by_name();
    } else if (!strcmp(what, "fifo")) {
        turns_by_fifo();
    } else if (!strcmp(what, "rwlock")) {
        run(3, writer, writer);
    } else if (!strcmp(what, "futex")) {
        run(2, by_futex, by_futex);
    } else if (!strcmp(what, "timer")) {
        run(2, sleeper, busy);
    } else if (!strcmp(what, "timeouts")) {
        run(2, timed, busy);
    } else if (!strcmp(what, "child")) {
        if (!fork()) {
            nap(20000);
            _exit(0);
        }
        wait(NULL);
    }
    puts("done");
    return 0;
}
