/* The other half, and two functions that call each other through the library's own PLT. */
long trap_odd(long n);

long trap_even(long n) { return n == 0 ? 0 : 1 + trap_odd(n - 1); }

long trap_pong(long n);

long trap_ping(long n) { return n == 0 ? 0 : 1 + trap_pong(n - 1); }

long trap_pong(long n) { return n == 0 ? 0 : 1 + trap_ping(n - 1); }

/* The program has one of its own, which is the one that counts. */
long trap_interposed(long n) { return -n; }

long trap_use_interposed(long n) { return trap_interposed(n); }
