// Each plug-in gets 200 ms to start, which takes none: the run is made of these sleeps. That is no finding, since a program may have to
// sleep; but it is said where nothing else is.
// cause: none
#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

class Plugin {
public:
    explicit Plugin(std::string name) : name_(std::move(name)), thread_([this] { ready_ = true; }) {}
    ~Plugin() { thread_.join(); }
    bool ready() const { return ready_; }

private:
    std::string name_;
    std::atomic<bool> ready_{false};
    std::thread thread_;
};

class Supervisor {
public:
    __attribute__((noinline)) void launch(const std::string &name)
    {
        plugins_.push_back(std::make_unique<Plugin>(name));
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
        if (!plugins_.back()->ready())
            throw 1;
    }

private:
    std::vector<std::unique_ptr<Plugin>> plugins_;
};

int main()
{
    Supervisor supervisor;
    for (const char *name : {"auth", "cache", "http", "log"})
        supervisor.launch(name);
}
