/* The floor: programs that do nothing, to compare the cost of the real ones with. */
#include "kernel.h"

SEC("tp_btf/sys_enter")
int sys_enter(u64 *arguments __attribute__((unused)))
{
	return 0;
}

SEC("tp_btf/sys_exit")
int sys_exit(u64 *arguments __attribute__((unused)))
{
	return 0;
}

char program_license[] SEC("license") = "Dual MIT/GPL";
