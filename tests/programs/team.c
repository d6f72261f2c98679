/* An OpenMP team. */
#include <stdio.h>

static double values[1000];

static double total(int count)
{
    double sum = 0;
#pragma omp parallel for reduction(+ : sum)
    for (int i = 0; i < count; i++)
        sum += values[i];
    return sum;
}

int main(void)
{
    for (int i = 0; i < 1000; i++)
        values[i] = i;
    printf("%g\n", total(1000));
}
