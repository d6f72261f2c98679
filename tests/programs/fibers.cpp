/* Fibers of boost.context, suspended inside library callbacks and resumed on other threads; some
 * are destroyed while suspended, which unwinds their stacks by an exception.
 * usage: fibers FIBERS ROUNDS THREADS */
#include "trap.h"

#include <atomic>
#include <barrier>
#include <boost/context/fiber.hpp>
#include <thread>
#include <vector>

namespace ctx = boost::context;

static std::atomic<long> destroyed, suspended, finished;

struct Guard {
    ~Guard()
    {
        trap_empty();
        destroyed++;
    }
};

struct Task {
    ctx::fiber own, back;
};

static void suspend(void *argument)
{
    auto *task = static_cast<Task *>(argument);
    Guard guard;
    suspended += trap_add(0, 1);
    task->back = std::move(task->back).resume();
}

static ctx::fiber body(Task *task, long rounds, ctx::fiber &&back)
{
    task->back = std::move(back);
    for (long i = 0; i < rounds; i++)
        trap_call(suspend, task);
    finished++;
    return std::move(task->back);
}

int main(int, char **argv)
{
    long fibers = atol(argv[1]), rounds = atol(argv[2]), threads = atol(argv[3]);
    std::vector<Task> tasks(fibers);
    for (auto &task : tasks)
        task.own = ctx::fiber([&task, rounds](ctx::fiber &&back) {
            return body(&task, rounds, std::move(back));
        });
    std::barrier barrier(threads);
    auto schedule = [&](long me) {
        /* Every fourth fiber is left in the middle. */
        for (long step = 0; step <= rounds; step++) {
            for (long i = (me + step) % threads; i < fibers; i += threads)
                if (i % 4 || step < rounds / 2)
                    tasks[i].own = std::move(tasks[i].own).resume();
            barrier.arrive_and_wait();
        }
    };
    std::vector<std::thread> running;
    for (long i = 1; i < threads; i++)
        running.emplace_back(schedule, i);
    schedule(0);
    for (auto &thread : running)
        thread.join();
    tasks.clear();
    printf("suspended %ld finished %ld destroyed %ld\n", suspended.load(), finished.load(),
           destroyed.load());
}
