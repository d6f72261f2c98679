/* Is over before anybody who looks ten times a second has found it. */
#include "spin.h"

int main(void) { return spin(60000000) == 1; }
