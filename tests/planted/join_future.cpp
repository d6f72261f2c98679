// Futures are started together, and their results wanted in order; one of them sleeps long after the others are done.
// cause: last-to-end
// group: fetch_inventory
// says: while it waits in nanosleep
#include <chrono>
#include <future>
#include <thread>
#include <vector>

__attribute__((noinline)) static int fetch_prices(int of)
{
    std::this_thread::sleep_for(std::chrono::milliseconds(60));
    return of;
}

__attribute__((noinline)) static int fetch_inventory(int of)
{
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
    return of;
}

int main()
{
    std::vector<std::future<int>> results;
    for (int i = 0; i < 5; i++)
        results.push_back(std::async(std::launch::async, i == 2 ? fetch_inventory : fetch_prices, i));
    int sum = 0;
    for (auto &result : results)
        sum += result.get();
    return sum == 10 ? 0 : 1;
}
