/*
 * One half of a recursion that alternates between two libraries, so that each of its calls goes
 * from one object to another and all of them are on the stack at once. HERE and THERE are the names
 * of this library's function and of the other's.
 */
void THERE(int further);

void HERE(int further)
{
	if (further)
		THERE(further - 1);
	/* Not a tail call. */
	__asm__ volatile("");
}
