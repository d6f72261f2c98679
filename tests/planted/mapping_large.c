// Few large pieces of memory are mapped, filled and unmapped, one for each picture.
// cause: mapping-churn
// also: rare-slow-calls
// says: munmap (libc.so.6) at summed mapping_large.c:
#include <sys/mman.h>
#include "planted.h"

enum { WIDTH = 3000, HEIGHT = 2000, PICTURES = 40 };

static unsigned char picture[HEIGHT][WIDTH];

/* The sums of all that is above and to the left. */
__attribute__((noinline)) static unsigned summed(void)
{
    const size_t size = sizeof(unsigned) * WIDTH * HEIGHT;
    unsigned *sums = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (sums == MAP_FAILED)
        exit(1);
    for (int y = 0; y < HEIGHT; y++) {
        unsigned row = 0;
        for (int x = 0; x < WIDTH; x++) {
            row += picture[y][x];
            sums[y * WIDTH + x] = row + (y ? sums[(y - 1) * WIDTH + x] : 0);
        }
    }
    unsigned all = sums[WIDTH * HEIGHT - 1];
    munmap(sums, size);
    return all;
}

int main(void)
{
    unsigned all = 0;
    for (int i = 0; i < PICTURES; i++) {
        picture[i][i] = 1;
        all += summed();
    }
    printf("%u\n", all);
    return 0;
}
