// Writes to /dev/null from two places: four times of five from one of them.
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

__attribute__((noinline)) static void often(int fd, long i)
{
    char byte = (char)i;
    if (write(fd, &byte, 1) != 1)
        exit(1);
    __asm__ volatile("");
}

__attribute__((noinline)) static void seldom(int fd, long i)
{
    char bytes[2] = {(char)i, 0};
    if (write(fd, bytes, 2) != 2)
        exit(1);
    __asm__ volatile("");
}

int main(void)
{
    int fd = open("/dev/null", O_WRONLY);
    for (long i = 0; i < 1000000; i++) {
        if (i % 5 == 0)
            seldom(fd, i);
        else
            often(fd, i);
    }
    return 0;
}
