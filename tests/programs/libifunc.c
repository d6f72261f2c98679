/* A function with two implementations, chosen when it is bound. */
static int one(int a) { return a + 1; }
static int two(int a) { return a + 2; }

static int (*choose(void))(int) { return __builtin_cpu_init(), __builtin_cpu_supports("sse2") ? two : one; }

int trap_ifunc(int a) __attribute__((ifunc("choose")));

/* An IFUNC of the C library, called by a library. */
unsigned long strlen(const char *);
unsigned long trap_length(const char *text) { return strlen(text); }
