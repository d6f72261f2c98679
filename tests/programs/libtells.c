/* Tells that it is loaded. */
#include <stdio.h>

__attribute__((constructor)) static void tell(void) { puts("loaded"); }
