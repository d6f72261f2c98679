/* Calls another library while it is initialised and while the process ends. */
#include "trap.h"

void early_nothing(void) {}
__attribute__((constructor)) static void constructor(void) { trap_errno(0); }
__attribute__((destructor)) static void destructor(void) { trap_small((struct small){0, 0, 0}); }
