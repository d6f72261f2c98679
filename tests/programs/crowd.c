// Calls two of the functions of libcrowd.so.

#include <stdio.h>

int crowd_run(void);

int main(void) {
    printf("%d\n", crowd_run());
    return 0;
}
