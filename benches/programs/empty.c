/* The library whose functions are called: nothing in them that could hide what a call costs. */
void empty(void) {}
