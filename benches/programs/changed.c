/* What a call takes through an entry that was changed once, and changed back, beyond what it takes before: nanoseconds
 * of processor time per call. Some processors take longer from then on to tell where such a jump leads.
 * usage: changed CALLS */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

void empty(void);
void other(void);
void call(long calls);
extern void (*entry)(void);

/* A loop that calls as programs call functions of libraries: by a jump through a pointer. */
__asm__(".data\n"
	".balign 8\n"
	"entry: .quad empty\n"
	".text\n"
	".balign 64\n"
	"empty: ret\n"
	".balign 64\n"
	"other: ret\n"
	".balign 64\n"
	"1: jmp *entry(%rip)\n"
	".balign 64\n"
	".globl call\n"
	"call: push %rbx\n"
	"mov %rdi, %rbx\n"
	"2: call 1b\n"
	"dec %rbx\n"
	"jne 2b\n"
	"pop %rbx\n"
	"ret\n");

static double timed(long calls)
{
	struct timespec start, end;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start);
	call(calls);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
	return ((end.tv_sec - start.tv_sec) * 1e9 + end.tv_nsec - start.tv_nsec) / calls;
}

int main(int argc, char **argv)
{
	long calls = argc == 2 ? atol(argv[1]) : 1;
	double before, after;

	timed(calls);
	before = timed(calls);
	entry = other;
	timed(calls);
	entry = empty;
	timed(calls);
	after = timed(calls);
	printf("%.4f\n", after - before);
	return 0;
}
