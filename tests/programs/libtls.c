/* A library that has SIZE bytes of thread-local storage. */
static __thread char area[SIZE];

char *tls_area(void)
{
    return area;
}
