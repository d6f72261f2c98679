/* qsort with an order that takes a while: most of the time is in the program, called by the C library. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static unsigned weight(uint64_t value)
{
	unsigned sum = 0;

	for (int i = 0; i < 16; i++) {
		sum += value & 15;
		value = value * 0x9e3779b97f4a7c15u ^ value >> 29;
	}
	return sum;
}

static int by_weight(const void *a, const void *b)
{
	unsigned x = weight(*(const uint64_t *)a), y = weight(*(const uint64_t *)b);

	return x < y ? -1 : x > y;
}

int main(void)
{
	enum { COUNT = 300000, ROUNDS = 22 };
	uint64_t *values = malloc(COUNT * sizeof(*values)), state = 1, sum = 0;

	if (!values)
		return 1;
	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < COUNT; i++)
			values[i] = state = state * 6364136223846793005u + 1442695040888963407u;
		qsort(values, COUNT, sizeof(*values), by_weight);
		sum += values[COUNT / 2];
	}
	printf("%llu\n", (unsigned long long)sum);
	return 0;
}
