/* The functions of libcontexts.so. */
#define EACH(MAKE) MAKE(0) MAKE(1) MAKE(2) MAKE(3) MAKE(4) MAKE(5) MAKE(6) MAKE(7)

#define DECLARE(number) void back_##number(void (*callback)(long), long argument);
EACH(DECLARE)
