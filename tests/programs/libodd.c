/* Half of a recursion across two libraries. Built with libeven.so, which it needs. */
long trap_even(long n);

long trap_odd(long n) { return n == 0 ? 0 : 1 + trap_even(n - 1); }
