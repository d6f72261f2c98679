// Threads that all begin in a routine of the program's own, which runs what its argument names: a function, a virtual function
// of an object, or always the same, however its callback differs from another's.
#include <cstdio>
#include <pthread.h>
#include <thread>

struct Start {
    long number;
    void (*function)(const char *);
    const char *text;
};

static void reader(const char *text) { puts(text); }
static void writer(const char *text) { puts(text); }

static void *start(void *argument)
{
    const Start *it = static_cast<Start *>(argument);
    it->function(it->text);
    return nullptr;
}

static void *same(void *argument)
{
    const Start *it = static_cast<Start *>(argument);
    it->function(it->text);
    return nullptr;
}

class Task {
public:
    virtual ~Task() {}
    void entry() { run(); }

protected:
    virtual void run() = 0;
};

class Compress : public Task {
    void run() override { puts("compresses"); }
};

class Send : public Task {
    void run() override { puts("sends"); }
};

static void *enter(void *argument)
{
    static_cast<Task *>(argument)->entry();
    return nullptr;
}

static void run(void *(*routine)(void *), void *argument)
{
    pthread_t thread;
    if (pthread_create(&thread, nullptr, routine, argument) == 0)
        pthread_join(thread, nullptr);
}

int main()
{
    Start starts[] = {{1, reader, "reads"}, {2, writer, "writes"}, {3, reader, "reads again"}};
    for (Start &it : starts)
        run(start, &it);
    run(same, &starts[0]);
    run(same, &starts[2]);
    Compress compress;
    Send send;
    run(enter, static_cast<Task *>(&compress));
    run(enter, static_cast<Task *>(&send));
    std::thread(&Task::entry, static_cast<Task *>(&compress)).join();
    std::thread(&Task::entry, static_cast<Task *>(&send)).join();
    return 0;
}
