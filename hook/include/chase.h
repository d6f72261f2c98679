/* Marks moments of a program, for its timeline. Without chase, a mark does nothing and needs nothing: there is no library to link.
   Of position-dependent executables (-no-pie), marks are seen only if they are linked with -Wl,-z,dynamic-undefined-weak. */
#ifndef CHASE_H
#define CHASE_H
#ifdef __cplusplus
extern "C"
#endif
void chase_mark_named(const char *name) __attribute__((weak));
/* Names are told apart by their first 120 bytes; of a process, 512 are kept. */
static inline void chase_mark(const char *name) { if (chase_mark_named) chase_mark_named(name); }
#endif
