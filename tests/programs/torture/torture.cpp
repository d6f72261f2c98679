/* A random program, the same for the same seed: its actions call libraries in all the ways that make hooking hard, one in
 * the other, in threads, coroutines and processes. What they compute goes into a checksum, and each call of the libraries
 * is counted; both are shared by all of its processes.
 * usage: torture SEED FUEL COUNTS TOLD PLUGIN... */
#include "calls.h"

#include <atomic>
#include <cerrno>
#include <csetjmp>
#include <csignal>
#include <cstring>
#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

struct shared *shared;

namespace {

char **arguments;
int argument_count;
pthread_key_t key;

/* What an action may use up and do. It is passed along, never thread-local: coroutines have their own. */
struct State {
    uint64_t random;
    long fuel;
    int depth;
    /* On a small stack: nothing deep. In the child of a process with several threads: nothing that takes locks. */
    bool small, alone;

    uint64_t next()
    {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        return random * 0x2545f4914f6cdd1dull;
    }
    uint64_t below(uint64_t limit) { return (next() >> 33) % limit; }
    State fork(long of_fuel)
    {
        uint64_t own = next() | 1;
        long part = of_fuel < fuel ? of_fuel : fuel;
        fuel -= part;
        return {own, part, depth + 1, small, alone};
    }
};

std::atomic<int> threads{1};

uint64_t act(State &state);
uint64_t several(State &state)
{
    uint64_t sum = 1;
    while (state.fuel > 0 && state.below(4) != 0)
        sum = sum * 31 + act(state);
    return sum;
}

/* ---- plain calls ---- */

uint64_t leaves(State &state)
{
    long value = static_cast<long>(state.below(1000));
    CALL(trap_empty)();
    value = CALL(trap_add)(value, 3);
    return static_cast<uint64_t>(CALL(trap_leaf)(value));
}

uint64_t values(State &state)
{
    double d = static_cast<double>(state.below(1 << 20));
    long l = static_cast<long>(state.below(1 << 20));
    struct pair pair = CALL(trap_swap)({d, d / 2});
    struct mixed mixed = CALL(trap_mixed)({l, d});
    struct small few = CALL(trap_small)({'a', static_cast<short>(l), 0.5f});
    struct large large = {};
    for (int i = 0; i < 12; i++)
        large.v[i] = l + i;
    large = CALL(trap_reverse)(large);
    __int128 product = CALL(trap_mul128)(static_cast<__int128>(l) << 40, l + 1);
    long double sum = CALL(trap_addl)(d, 0.25L);
    double doubles = CALL(trap_sum_doubles)(4, d, 1.5, 2.5, 3.5);
    long longs = CALL(trap_sum_longs)(8, l, 1L, 2L, 3L, 4L, 5L, 6L, 7L);
    long many = CALL(trap_many)(l, 2, 3, 4, 5, 6, 7, 8, 9, 10, d, 2, 3, 4, 5, 6, 7, 8, 9, 10);
    double eight[8] = {d, 1, 2, 3, 4, 5, 6, 7};
    double vectors = CALL(torture_vectors)(eight);
    uint64_t result = CALL(trap_not)(l & 1) + static_cast<uint64_t>(CALL(trap_negate)(5));
    result += static_cast<uint64_t>(CALL(trap_halve)(3.0f) * 4);
    result = result * 31 + static_cast<uint64_t>(pair.x + pair.y * 3);
    result = result * 31 + static_cast<uint64_t>(mixed.i) + static_cast<uint64_t>(few.s + few.f * 8);
    result = result * 31 + static_cast<uint64_t>(large.v[0] ^ large.v[11]);
    result = result * 31 + static_cast<uint64_t>(product >> 20) + static_cast<uint64_t>(sum * 4);
    return result * 31 + static_cast<uint64_t>(doubles + vectors) + static_cast<uint64_t>(longs ^ many);
}

/* Enough to be sampled. */
uint64_t hot(State &state)
{
    long sum = 0, rounds = 500 + static_cast<long>(state.below(4000));
    for (long i = 0; i < rounds; i++)
        sum = CALL(trap_add)(sum, i);
    for (long i = 0; i < rounds / 4; i++)
        sum ^= static_cast<long>(CALL(torture_apply)([](void *, uint64_t value) {
            return static_cast<uint64_t>(CALL(trap_leaf)(static_cast<long>(value)));
        }, nullptr, static_cast<uint64_t>(i)));
    return static_cast<uint64_t>(sum);
}

__attribute__((noinline)) long tail(long a, long b) { return CALL(torture_pass)(a, b); }
uint64_t tails(State &state)
{
    long sum = static_cast<long>(state.below(100));
    for (int i = 0; i < 20; i++)
        sum = tail(sum, i);
    return static_cast<uint64_t>(sum);
}

/* ---- one in the other ---- */

uint64_t applied(void *context, uint64_t value)
{
    return value + several(*static_cast<State *>(context));
}
uint64_t nested(State &state)
{
    State inner = state.fork(state.fuel / 2);
    uint64_t result = CALL(torture_apply)(applied, &inner, state.next());
    state.fuel += inner.fuel;
    return result;
}

long deeper(long depth)
{
    if (depth <= 0)
        return CALL(trap_add)(depth, 1);
    return CALL(trap_nest)(depth - 1, deeper) + (depth & 3);
}
uint64_t deep(State &state)
{
    return static_cast<uint64_t>(deeper(static_cast<long>(state.below(state.small ? 20 : 1500))));
}

int compare(const void *a, const void *b)
{
    long left = *static_cast<const long *>(a), right = *static_cast<const long *>(b);
    return CALL(trap_add)(left, -right) < 0 ? -1 : left > right;
}
uint64_t sorted(State &state)
{
    long numbers[40];
    for (long &number : numbers)
        number = static_cast<long>(state.below(1000));
    qsort(numbers, 40, sizeof numbers[0], compare);
    return static_cast<uint64_t>(numbers[0] * 31 + numbers[20] * 7 + numbers[39]);
}

/* ---- left without a return ---- */

struct Jump {
    jmp_buf target;
    State *state;
};
uint64_t jumping(void *context, uint64_t)
{
    Jump *jump = static_cast<Jump *>(context);
    several(*jump->state);
    longjmp(jump->target, 1);
}
__attribute__((noinline)) uint64_t jumps(State &state)
{
    State inner = state.fork(state.fuel / 3);
    Jump jump;
    jump.state = &inner;
    if (setjmp(jump.target) == 0)
        CALL(torture_apply)(jumping, &jump, 0);
    return 5;
}

uint64_t throwing(void *context, uint64_t value)
{
    several(*static_cast<State *>(context));
    throw static_cast<int>(value);
}
uint64_t rethrowing(void *context, uint64_t value)
{
    struct Guard {
        ~Guard() { CALL(trap_empty)(); }
    } guard;
    return CALL(torture_apply)(throwing, context, value);
}
uint64_t throws(State &state)
{
    State inner = state.fork(state.fuel / 3);
    try {
        CALL(torture_apply)(rethrowing, &inner, state.below(1000));
    } catch (int number) {
        return static_cast<uint64_t>(number) + static_cast<uint64_t>(CALL(trap_add)(number, 1));
    }
    return 0;
}

/* ---- coroutines ---- */

struct Coroutine {
    ucontext_t self, caller;
    State state;
    uint64_t result;
    char stack[256 << 10];
};
thread_local Coroutine *starting;
void body()
{
    Coroutine *own = starting;
    own->result = several(own->state);
    swapcontext(&own->self, &own->caller);
    own->result = own->result * 31 + several(own->state);
    struct Both {
        Coroutine *own;
    } both{own};
    /* Suspended inside of a call. */
    own->result += CALL(torture_apply)([](void *context, uint64_t value) {
        Coroutine *it = static_cast<Both *>(context)->own;
        swapcontext(&it->self, &it->caller);
        return value + several(it->state);
    }, &both, 4);
    for (;;)
        swapcontext(&own->self, &own->caller);
}
uint64_t resumed(void *context, uint64_t value)
{
    Coroutine *one = static_cast<Coroutine *>(context);
    swapcontext(&one->caller, &one->self);
    return value + one->result;
}
uint64_t coroutines(State &state)
{
    volatile uint64_t sum = 0;
    Coroutine *all[2];
    for (Coroutine *&one : all) {
        one = static_cast<Coroutine *>(calloc(1, sizeof *one));
        getcontext(&one->self);
        one->self.uc_stack.ss_sp = one->stack;
        one->self.uc_stack.ss_size = sizeof one->stack;
        one->state = state.fork(state.fuel / 4);
        one->state.small = true;
        makecontext(&one->self, body, 0);
        starting = one;
        swapcontext(&one->caller, &one->self);
    }
    /* In turns, also from inside of other calls; some are never finished. */
    unsigned turns = static_cast<unsigned>(state.below(5));
    for (unsigned i = 0; i < turns; i++) {
        Coroutine *one = all[i % 2];
        if (state.below(2))
            sum = sum + CALL(torture_apply)(resumed, one, i);
        else
            sum = sum + resumed(one, i);
    }
    for (Coroutine *one : all)
        free(one);
    return sum;
}

/* ---- signals ---- */

void handler(int)
{
    int before = errno;
    CALL(trap_leaf)(1);
    CALL(torture_apply)([](void *, uint64_t value) {
        return static_cast<uint64_t>(CALL(trap_add)(static_cast<long>(value), 1));
    }, nullptr, 2);
    errno = before;
}
uint64_t signals(State &state)
{
    errno = 77;
    for (uint64_t i = state.below(4); i > 0; i--)
        raise(SIGUSR1);
    return static_cast<uint64_t>(errno);
}

/* ---- threads ---- */

struct Thread {
    State state;
    int kind;
    uint64_t result;
    sem_t waits;
};
uint64_t waiting(void *context, uint64_t)
{
    Thread *own = static_cast<Thread *>(context);
    own->result = several(own->state);
    sem_post(&own->waits);
    if (own->kind == 1)
        pthread_exit(own);
    for (;;)
        pause();
}
void *runs(void *argument)
{
    Thread *own = static_cast<Thread *>(argument);
    pthread_setspecific(key, own);
    if (own->kind == 0)
        own->result = several(own->state);
    else
        CALL(torture_apply)(waiting, own, 0);
    return own;
}
void at_thread_end(void *) { CALL(trap_leaf)(2); }
uint64_t makes_threads(State &state)
{
    Thread all[3];
    pthread_t ids[3];
    int count = 1 + static_cast<int>(state.below(3));
    if (threads.fetch_add(count) > 40) {
        threads -= count;
        return 0;
    }
    for (int i = 0; i < count; i++) {
        all[i].state = state.fork(state.fuel / 4);
        all[i].state.small = true;
        all[i].kind = static_cast<int>(state.below(3));
        all[i].result = 0;
        sem_init(&all[i].waits, 0, 0);
        CHECK(pthread_create(&ids[i], nullptr, runs, &all[i]) == 0);
    }
    uint64_t sum = several(state);
    for (int i = 0; i < count; i++) {
        if (all[i].kind == 2) {
            while (sem_wait(&all[i].waits) != 0) {
            }
            pthread_cancel(ids[i]);
        }
        CHECK(pthread_join(ids[i], nullptr) == 0);
        sum = sum * 31 + all[i].result;
        sem_destroy(&all[i].waits);
    }
    threads -= count;
    return sum;
}

/* ---- processes ---- */

uint64_t waited_for(pid_t child)
{
    int status = 0;
    CHECK(child > 0);
    while (waitpid(child, &status, 0) != child)
        CHECK(errno == EINTR);
    return static_cast<uint64_t>(status);
}
uint64_t forks(State &state)
{
    State inner = state.fork(state.fuel / 3);
    pid_t child = fork();
    if (child == 0) {
        inner.alone = inner.alone || threads.load() > 1;
        uint64_t result = several(inner);
        __atomic_fetch_add(&shared->checksum, result, __ATOMIC_RELAXED);
        if (inner.alone || (result & 1) != 0)
            _exit(static_cast<int>(result & 63));
        exit(static_cast<int>(result & 63));
    }
    return waited_for(child);
}
uint64_t vforks(State &)
{
    pid_t child = vfork();
    if (child == 0) {
        CALL(trap_add)(1, 2);
        _exit(3);
    }
    return waited_for(child);
}
uint64_t executes(State &state)
{
    char seed[32], fuel[32];
    State inner = state.fork(state.fuel / 4);
    snprintf(seed, sizeof seed, "%lu", static_cast<unsigned long>(inner.random));
    snprintf(fuel, sizeof fuel, "-%ld", inner.fuel / 2);
    char **own = static_cast<char **>(calloc(static_cast<size_t>(argument_count) + 1, sizeof *own));
    memcpy(own, arguments, static_cast<size_t>(argument_count) * sizeof *own);
    own[1] = seed;
    own[2] = fuel;
    pid_t child;
    if (state.below(2)) {
        CHECK(posix_spawn(&child, "/proc/self/exe", nullptr, nullptr, own, environ) == 0);
    } else if ((child = fork()) == 0) {
        CALL(trap_leaf)(3);
        execv("/proc/self/exe", own);
        _exit(127);
    }
    uint64_t status = waited_for(child);
    free(own);
    return status;
}

/* ---- what is loaded ---- */

uint64_t loads(State &state)
{
    uint64_t sum = 0;
    for (uint64_t round = 1 + state.below(3); round > 0; round--) {
        const char *name = arguments[5 + state.below(static_cast<uint64_t>(argument_count) - 5)];
        void *plugin = dlopen(name, state.below(2) ? RTLD_NOW : RTLD_LAZY);
        CHECK(plugin != nullptr);
        auto begin = reinterpret_cast<void (*)(struct shared *)>(dlsym(plugin, "plugin_begin"));
        auto work = reinterpret_cast<uint64_t (*)(uint64_t, uint64_t)>(dlsym(plugin, "plugin_work"));
        auto pass = reinterpret_cast<long (*)(long, long)>(dlsym(plugin, "plugin_pass"));
        CHECK(begin && work && pass);
        begin(shared);
        sum = sum * 31 + work(state.next(), state.below(60));
        sum = sum * 31 + static_cast<uint64_t>(pass(static_cast<long>(state.below(99)), 4));
        if (state.below(3) == 0)
            sum += act(state);
        CHECK(dlclose(plugin) == 0);
    }
    return sum;
}

uint64_t looks_back(State &)
{
    return CALL(torture_apply)([](void *, uint64_t) {
        void *frames[64];
        return static_cast<uint64_t>(backtrace(frames, 64) > 3);
    }, nullptr, 0);
}

struct Action {
    uint64_t (*function)(State &);
    unsigned often;
    /* What takes locks, or many resources. */
    bool heavy;
};
const Action ACTIONS[] = {
    {leaves, 6, false},     {values, 6, false},       {hot, 3, false},    {tails, 3, false},
    {nested, 10, false},    {deep, 2, false},         {sorted, 2, false}, {jumps, 6, false},
    {throws, 6, true},      {coroutines, 5, true},    {signals, 3, false}, {makes_threads, 3, true},
    {forks, 2, false},      {vforks, 1, false},       {executes, 1, true}, {loads, 3, true},
    {looks_back, 1, true},
};

uint64_t act(State &state)
{
    state.fuel--;
    if (state.fuel <= 0 || state.depth > 12)
        return leaves(state);
    unsigned all = 0;
    for (const Action &action : ACTIONS)
        all += action.often;
    uint64_t chosen = state.below(all);
    for (const Action &action : ACTIONS) {
        if (chosen < action.often)
            return action.heavy && state.alone ? leaves(state) : action.function(state);
        chosen -= action.often;
    }
    return 0;
}

void at_exit() { CALL(trap_empty)(); }

/* After all else, in the first process. */
pid_t teller;
void tell()
{
    if (getpid() != teller)
        return;
    static const char *const names[] = {
#define X(name) #name,
        FUNCTIONS(X)
#undef X
    };
    for (int i = 0; i < FUNCTION_COUNT; i++)
        trap_tell(arguments[4], names[i], static_cast<long>(shared->calls[i]));
}

} // namespace

int main(int argc, char **argv)
{
    CHECK(argc > 5);
    arguments = argv;
    argument_count = argc;
    long fuel = atol(argv[2]);
    bool first = fuel > 0;
    int file = open(argv[3], O_RDWR | (first ? O_CREAT : 0), 0600);
    CHECK(file >= 0 && ftruncate(file, sizeof *shared) == 0);
    void *map = mmap(nullptr, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    CHECK(map != MAP_FAILED);
    close(file);
    shared = static_cast<struct shared *>(map);
    struct sigaction action = {};
    action.sa_handler = handler;
    action.sa_flags = SA_RESTART;
    sigaction(SIGUSR1, &action, nullptr);
    sigaction(SIGALRM, &action, nullptr);
    pthread_key_create(&key, at_thread_end);
    teller = first ? getpid() : 0;
    atexit(tell);
    atexit(at_exit);
    void *frames[4];
    backtrace(frames, 4);
    State state = {strtoul(argv[1], nullptr, 10) * 0x9e3779b97f4a7c15ull | 1, labs(fuel), 0, false, false};
    struct itimerval timer = {{0, 1500}, {0, 1500}};
    setitimer(ITIMER_REAL, &timer, nullptr);
    uint64_t sum = 0;
    while (state.fuel > 0)
        sum = sum * 31 + act(state);
    timer = {};
    setitimer(ITIMER_REAL, &timer, nullptr);
    __atomic_fetch_add(&shared->checksum, sum, __ATOMIC_RELAXED);
    if (!first)
        return static_cast<int>(sum & 63);
    printf("%016lx\n", static_cast<unsigned long>(shared->checksum));
    return 0;
}
