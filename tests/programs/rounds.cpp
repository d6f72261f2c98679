// 64 threads that work in rounds: for each line on standard input, each of them checksums so many pieces, and throws in
// between. Says what came of it, which is the same each time.
#include <condition_variable>
#include <cstdio>
#include <mutex>
#include <string>
#include <thread>
#include <vector>
#include <zlib.h>

namespace {
constexpr int THREADS = 64, PIECES = 500, THROWN = 5;
std::mutex mutex;
std::condition_variable changed;
int round_number, finished;
bool over;
unsigned long sums[THREADS];

void work(int number) {
    std::string piece(512, static_cast<char>('a' + number % 26));
    int seen = 0;
    for (;;) {
        std::unique_lock<std::mutex> lock(mutex);
        changed.wait(lock, [&] { return over || round_number > seen; });
        if (over)
            return;
        seen = round_number;
        lock.unlock();
        unsigned long sum = 0;
        for (int i = 0; i < PIECES; i++) {
            piece[i % 512]++;
            sum += crc32(0, reinterpret_cast<const Bytef *>(piece.data()), static_cast<uInt>(piece.size()));
            if (i % (PIECES / THROWN) == 0) {
                try {
                    throw number;
                } catch (int caught) {
                    sum += static_cast<unsigned long>(caught);
                }
            }
        }
        sums[number] += sum;
        lock.lock();
        finished++;
        changed.notify_all();
    }
}
} // namespace

int main() {
    std::vector<std::thread> threads;
    for (int i = 0; i < THREADS; i++)
        threads.emplace_back(work, i);
    std::puts("ready");
    std::fflush(stdout);
    char line[64];
    while (std::fgets(line, sizeof line, stdin) != nullptr) {
        std::unique_lock<std::mutex> lock(mutex);
        finished = 0;
        round_number++;
        changed.notify_all();
        changed.wait(lock, [] { return finished == THREADS; });
        unsigned long sum = 0;
        for (unsigned long own : sums)
            sum += own;
        std::printf("%d %lu\n", round_number, sum);
        std::fflush(stdout);
    }
    {
        std::lock_guard<std::mutex> lock(mutex);
        over = true;
        changed.notify_all();
    }
    for (std::thread &thread : threads)
        thread.join();
}
