// One of five std::threads ends long after the others.
// cause: last-to-end
// group: main::{lambda#1}
// waker: main::{lambda#1}
// site: main last_to_end.cpp:
#include <thread>
#include <vector>
#include "planted.h"

int main()
{
    std::vector<std::thread> threads;
    for (int i = 0; i < 5; i++)
        threads.emplace_back([i] { nap_ms(i == 3 ? 300 : 50); });
    for (auto &thread : threads)
        thread.join();
}
