// A server hands each request on to another one, which answers at once; those who ask think for a while before they do.
// cause: none
#include "proxy.h"

int main(int count, char **arguments)
{
    proxy(count, arguments, 0, 25);
    return 0;
}
