// Readers that wait for a writer who is slow, on a std::shared_mutex.
// cause: serialising-lock
// group: main::{lambda#2}
// object: table
// waker: in pthread_rwlock_unlock
#include <atomic>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <vector>
#include "planted.h"

std::shared_mutex table;
static std::atomic<int> rounds{0};

int main()
{
    std::vector<std::thread> readers;
    std::thread writer([] {
        for (rounds = 0; rounds < 25; rounds++) {
            std::unique_lock<std::shared_mutex> held(table);
            nap_ms(12);
            held.unlock();
            nap_ms(1);
        }
    });
    for (int i = 0; i < 3; i++)
        readers.emplace_back([] {
            while (rounds < 25) {
                // (Readers that held it for long would never let the writer in.)
                std::shared_lock<std::shared_mutex>(table).unlock();
                nap_ms(1);
            }
        });
    writer.join();
    for (auto &reader : readers)
        reader.join();
}
