// Each line gets its time, for which the C library asks each time whether the local time is still the same.
// cause: looked-up-again
// object: /etc/localtime
// site: stamp local_time.c
// says: TZ=:/etc/localtime
#include "planted.h"

enum { LINES = 300000 };

__attribute__((noinline)) static size_t stamp(time_t at)
{
    char text[32];
    return strftime(text, sizeof(text), "%F %T", localtime(&at));
}

int main(void)
{
    size_t length = 0;
    unsetenv("TZ");
    for (int line = 0; line < LINES; line++)
        length += stamp(line);
    return length == 0;
}
