// Each line of a log is flushed by std::endl; the pages beside it are not.
// cause: small-transfers
// also: tiny-calls
// object: access.log
// site: note small_flushed.cpp:
#include <fstream>
#include <string>

__attribute__((noinline)) static void note(std::ofstream &log, const std::string &path, int status)
{
    log << "GET " << path << ' ' << status << std::endl;
}

int main()
{
    std::ofstream log("access.log"), pages("pages.html");
    const std::string page(200, 'x');
    for (int request = 0; request < 200000; request++) {
        pages << page << '\n';
        note(log, "/item/" + std::to_string(request % 300), 200);
    }
}
