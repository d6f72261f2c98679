// Each line gets its time, and the environment says which one is the local one.
// cause: none
#include "planted.h"

enum { LINES = 600000 };

int main(void)
{
    char text[32];
    size_t length = 0;
    setenv("TZ", ":/etc/localtime", 1);
    for (time_t line = 0; line < LINES; line++) {
        length += strftime(text, sizeof(text), "%F %T", localtime(&line));
        work(100);
    }
    return length == 0;
}
