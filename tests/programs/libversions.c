/* One symbol in two versions; the second is the default. Built with versions.map. */
__asm__(".symver first, trap_versioned@TRAP_1\n"
        ".symver second, trap_versioned@@TRAP_2\n");

int first(void);
int second(void);

int first(void) { return 1; }
int second(void) { return 2; }
