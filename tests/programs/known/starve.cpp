/* The main thread feeds two consumers by std::condition_variable, too slowly.
 * Expected: starved-consumers, pthread_cond_wait, both; the longest wait. */
#include "known.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>

static std::mutex lock;
static std::condition_variable more;
static int ready;
static bool done;
static long waited[2];

static void consume(int self)
{
    for (;;) {
        {
            std::unique_lock<std::mutex> held(lock);
            long start = known_now();
            more.wait(held, [] { return ready || done; });
            waited[self] += known_now() - start;
            if (!ready)
                return;
            ready--;
        }
        known_pack(2 * MS);
    }
}

int main()
{
    std::thread consumers[] = {std::thread(consume, 0), std::thread(consume, 1)};
    for (int item = 0; item < 60; item++) {
        known_parse(5 * MS);
        {
            std::lock_guard<std::mutex> held(lock);
            ready++;
        }
        more.notify_one();
    }
    {
        std::lock_guard<std::mutex> held(lock);
        done = true;
    }
    more.notify_all();
    for (auto &consumer : consumers)
        consumer.join();
    tell("saves_ns", std::max(waited[0], waited[1]));
}
