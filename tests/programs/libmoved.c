/* Built twice: a function, and a library that calls it. */
long of_another(long number);

#if CALLER
long call_often(long calls)
{
    long sum = 0;
    for (long i = 0; i < calls; i++)
        sum += of_another(i);
    return sum;
}
#else
long of_another(long number) { return number ^ 1; }
#endif
