/* Threads by every kind of callable that C++ has, one after the other. */
#include <cstdio>
#include <functional>
#include <future>
#include <string>
#include <thread>

namespace app {

struct Big {
    char bytes[40];
};

struct Worker {
    void step(int number) { printf("step %d\n", number); }
    virtual void turn() { puts("turn of the base"); }
    virtual ~Worker() = default;
};

struct Special : Worker {
    void turn() override { puts("turn"); }
};

struct Counter {
    int start;
    void operator()() { printf("count from %d\n", start); }
};

void plain() { puts("plain"); }
void with_arguments(int number, const std::string &text, double factor)
{
    printf("%d %s %g\n", number, text.c_str(), factor);
}
void by_reference(long &number) { number++; }
void with_callback(void (*callback)()) { callback(); }
void with_function(std::function<void()> function) { function(); }
void with_big(Big big, int number) { printf("big %d %d\n", big.bytes[0], number); }

} // namespace app

extern "C" void c_function() { puts("c"); }

static void finish(std::thread thread) { thread.join(); }

int main()
{
    app::Special worker;
    long number = 0;
    std::function<void()> function = app::plain;
    std::function<void()> closure = [&] { number++; };
    finish(std::thread(app::plain));
    finish(std::thread(app::with_arguments, 3, "text", 2.5));
    finish(std::thread(app::by_reference, std::ref(number)));
    finish(std::thread(&app::Worker::step, &worker, 4));
    finish(std::thread(&app::Worker::turn, &worker));
    finish(std::thread(app::Counter{7}));
    finish(std::thread([] { puts("lambda"); }));
    finish(std::thread([&](int more) { number += more; }, 5));
    finish(std::thread(app::with_callback, c_function));
    finish(std::thread(c_function));
    finish(std::thread(function));
    finish(std::thread(closure));
    finish(std::thread(app::with_function, function));
    finish(std::thread(std::bind(app::with_arguments, 1, "bound", 1.5)));
    finish(std::thread(app::with_big, app::Big{}, 2));
    std::async(std::launch::async, app::plain).get();
    std::async(std::launch::async, [] { puts("asynchronous"); }).get();
    printf("%ld\n", number);
}
