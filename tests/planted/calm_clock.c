// A thread that does something twenty times a second, and sleeps in between.
// cause: none
#include "planted.h"

int main(void)
{
    for (int i = 0; i < 10; i++) {
        work(1000000);
        nap_ms(40);
    }
    return 0;
}
