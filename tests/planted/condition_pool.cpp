// Eight threads share two connections, and wait for one at a condition of C++'s library.
// cause: mutual-waits
// also: serialising-lock
// group: main::{lambda#1}
// object: connections
// site: acquire condition_pool.cpp
// waker: in pthread_cond_
// says: of it for connections
#include <condition_variable>
#include <mutex>
#include <thread>
#include <vector>
#include "planted.h"

static struct {
    std::mutex guard;
    std::condition_variable is_free;
    int free = 2;
} connections;

__attribute__((noinline)) static void acquire()
{
    std::unique_lock<std::mutex> held(connections.guard);
    connections.is_free.wait(held, [] { return connections.free > 0; });
    connections.free--;
}

__attribute__((noinline)) static void release()
{
    {
        std::lock_guard<std::mutex> held(connections.guard);
        connections.free++;
    }
    connections.is_free.notify_one();
}

int main()
{
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; i++)
        threads.emplace_back([] {
            for (int query = 0; query < 40; query++) {
                acquire();
                nap_ms(5);
                release();
                work(100000);
            }
        });
    for (auto &thread : threads)
        thread.join();
}
