/* A library function that calls another library's: two calls, one within the other. */
void empty(void);

void nested(void)
{
	empty();
	/* Not a tail call, so that both are on the stack at once. */
	__asm__ volatile("");
}
