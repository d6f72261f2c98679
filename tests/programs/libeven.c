/* The other half, and a function that calls itself through its own PLT. */
long trap_odd(long n);

long trap_even(long n) { return n == 0 ? 0 : 1 + trap_odd(n - 1); }

long trap_fibonacci(long n) { return n < 2 ? n : trap_fibonacci(n - 1) + trap_fibonacci(n - 2); }

/* The program has one of its own, which is the one that counts. */
long trap_interposed(long n) { return -n; }

long trap_use_interposed(long n) { return trap_interposed(n); }
