// Three stages with queues of conditions between them; the second is slow.
// cause: limiting-stage
// group: transform
// waker: in pthread_cond_
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include "planted.h"

class Queue {
public:
    void put(int item)
    {
        std::unique_lock<std::mutex> held(guard);
        room.wait(held, [&] { return items.size() < 3; });
        items.push_back(item);
        some.notify_one();
    }

    int take()
    {
        std::unique_lock<std::mutex> held(guard);
        some.wait(held, [&] { return !items.empty(); });
        int item = items.front();
        items.pop_front();
        room.notify_one();
        return item;
    }

private:
    std::mutex guard;
    std::condition_variable room, some;
    std::deque<int> items;
};

static Queue raw, cooked;
enum { ITEMS = 50 };

static void parse()
{
    for (int item = 0; item < ITEMS; item++) {
        work(300000);
        raw.put(item);
    }
}

static void transform()
{
    for (int item = 0; item < ITEMS; item++) {
        int taken = raw.take();
        work(1800000);
        cooked.put(taken);
    }
}

static void store()
{
    for (int item = 0; item < ITEMS; item++) {
        cooked.take();
        work(300000);
    }
}

int main()
{
    std::thread threads[] = {std::thread(parse), std::thread(transform), std::thread(store)};
    for (auto &thread : threads)
        thread.join();
}
