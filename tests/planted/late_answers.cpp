// A server looks for requests every 25 ms, since nobody tells it that there are any; who asks waits for the answer. From outside, that
// is how a clock works, too: it is no finding, but what the run consists of.
// cause: none
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

struct Request {
    std::condition_variable answered;
    bool is_done = false;
};

class Server {
public:
    void ask()
    {
        Request request;
        std::unique_lock<std::mutex> lock(mutex);
        requests.push_back(&request);
        // (more.notify_one() is missing.)
        request.answered.wait(lock, [&] { return request.is_done; });
    }

    void serve()
    {
        std::unique_lock<std::mutex> lock(mutex);
        while (!stopped) {
            more.wait_for(lock, std::chrono::milliseconds(25));
            for (; !requests.empty(); requests.pop_front()) {
                requests.front()->is_done = true;
                requests.front()->answered.notify_one();
            }
        }
    }

    void stop()
    {
        std::lock_guard<std::mutex> lock(mutex);
        stopped = true;
    }

private:
    std::mutex mutex;
    std::condition_variable more;
    std::deque<Request *> requests;
    bool stopped = false;
};

int main()
{
    Server server;
    std::thread worker(&Server::serve, &server);
    for (int number = 0; number < 40; number++)
        server.ask();
    server.stop();
    worker.join();
}
