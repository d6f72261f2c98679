// Rounds of a few threads, each of which adds up a few numbers.
// cause: short-threads
// group: add_up
// site: sum_of short_threads.cpp
// says: 4000 threads
#include <atomic>
#include <thread>
#include <vector>
#include "planted.h"

static std::atomic<unsigned long> sum;

__attribute__((noinline)) static void add_up(unsigned long part)
{
    sum += work(part + 1000);
}

__attribute__((noinline)) static void sum_of(unsigned long row)
{
    std::vector<std::thread> parts;
    for (unsigned long part = 0; part < 4; part++)
        parts.emplace_back(add_up, row % 2 + part);
    for (auto &part : parts)
        part.join();
}

int main()
{
    for (unsigned long row = 0; row < 1000; row++)
        sum_of(row);
    return sum == 1;
}
