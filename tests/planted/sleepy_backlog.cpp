// A consumer sleeps for each message that it takes, and messages pile up: it has most of them left when there are no more.
// cause: sleeping-stage
// group: deliver
// site: deliver
// says: sleeps on
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include "planted.h"

static std::mutex messages_mu;
static std::condition_variable has_messages;
static std::deque<int> messages;
static bool is_over;

static void deliver()
{
    for (;;) {
        std::unique_lock<std::mutex> lock(messages_mu);
        has_messages.wait(lock, [] { return !messages.empty() || is_over; });
        if (messages.empty())
            return;
        messages.pop_front();
        lock.unlock();
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
}

int main()
{
    std::thread consumer(deliver);
    for (int message = 0; message < 300; message++) {
        work(50000);
        std::lock_guard<std::mutex> lock(messages_mu);
        messages.push_back(message);
        has_messages.notify_one();
    }
    {
        std::lock_guard<std::mutex> lock(messages_mu);
        is_over = true;
    }
    has_messages.notify_one();
    consumer.join();
    return 0;
}
