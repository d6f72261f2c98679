/* Calls without end, and after each their number in the file that is named, which is mapped: what is there outlives a kill. */
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>

#include "trap.h"

int main(int count, char **arguments)
{
	int file = open(arguments[1], O_RDWR);
	volatile uint64_t *told = mmap(0, sizeof *told, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);

	if (count < 2 || told == MAP_FAILED) {
		return 1;
	}
	for (;;) {
		trap_leaf(1);
		*told = *told + 1;
	}
}
