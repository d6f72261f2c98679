/* Calls libknown.so for programs that can't be linked with it. */
#include "known.h"

void shim_parse(long ns) { known_parse(ns); }
void shim_pack(long ns) { known_pack(ns); }
long shim_total(int kind) { return known_log(kind)->total; }
