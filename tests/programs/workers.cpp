/* An ordinary C++ program: threads, futures, condition variables, exceptions between threads,
 * streams, regular expressions, thread_local objects. */
#include <condition_variable>
#include <future>
#include <iostream>
#include <map>
#include <mutex>
#include <queue>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <thread>
#include <vector>

class Queue {
    std::mutex mutex;
    std::condition_variable filled;
    std::queue<int> items;

public:
    void put(int item)
    {
        std::lock_guard lock(mutex);
        items.push(item);
        filled.notify_one();
    }

    int take()
    {
        std::unique_lock lock(mutex);
        filled.wait(lock, [this] { return !items.empty(); });
        int item = items.front();
        items.pop();
        return item;
    }
};

static thread_local std::string last_error;

static int checked(int number)
{
    if (number % 7 == 3)
        throw std::out_of_range("number " + std::to_string(number));
    return number * 2;
}

int main()
{
    Queue queue;
    std::map<int, int> counts;
    std::mutex mutex;
    std::vector<std::thread> workers;
    long sum = 0, errors = 0;
    for (int i = 0; i < 4; i++)
        workers.emplace_back([&] {
            for (int item; (item = queue.take()) >= 0;) {
                int result = 0;
                try {
                    result = checked(item);
                } catch (const std::exception &error) {
                    last_error = error.what();
                }
                std::lock_guard lock(mutex);
                sum += result, errors += result == 0 && item != 0;
                counts[item % 3]++;
            }
        });
    for (int i = 0; i < 1000; i++)
        queue.put(i);
    for (int i = 0; i < 4; i++)
        queue.put(-1);
    for (auto &worker : workers)
        worker.join();
    std::cout << sum << ' ' << errors << ' ' << counts[0] << ' ' << counts[1] << std::endl;

    auto future = std::async(std::launch::async, [] { return checked(10); });
    try {
        std::cout << future.get() << std::endl;
    } catch (const std::out_of_range &error) {
        std::cerr << "from the other thread: " << error.what() << std::endl;
    }
    std::string text = "one 22 three 4444";
    std::regex digits("[0-9]+");
    for (std::sregex_iterator i(text.begin(), text.end(), digits), end; i != end; ++i)
        std::cout << i->str() << '\n';
    try {
        std::regex broken("(");
    } catch (const std::regex_error &error) {
        std::cout << "broken: " << error.code() << '\n';
    }
    std::istringstream numbers("1 2 x");
    numbers.exceptions(std::ios::failbit);
    try {
        for (int n;;)
            numbers >> n, std::cout << n << '\n';
    } catch (const std::ios_base::failure &) {
        std::cout << "no number\n";
    }
    return 5;
}
