/* Prints what a system call takes, ns: the least of many short rounds, since what else the machine
 * does only adds. The calls are made by no library.
 * usage: syscalls ROUNDS CALLS */
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>

static long getppid_inline(void)
{
	long result = SYS_getppid;

	__asm__ volatile("syscall" : "+a"(result) : : "rcx", "r11", "memory");
	return result;
}

static double now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1e9 + now.tv_nsec;
}

int main(int argc, char **argv)
{
	int rounds = argc > 2 ? atoi(argv[1]) : 1, calls = argc > 2 ? atoi(argv[2]) : 1;
	double least = 1e18;

	for (int round = 0; round < rounds; round++) {
		double start = now_ns(), each;

		for (int i = 0; i < calls; i++)
			getppid_inline();
		each = (now_ns() - start) / calls;
		if (each < least)
			least = each;
	}
	printf("%.2f\n", least);
	return 0;
}
