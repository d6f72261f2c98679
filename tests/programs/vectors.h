#include <stdarg.h>

typedef double vector __attribute__((vector_size(WIDTH)));

vector trap_vector(vector a, vector b, vector c, vector d, vector e, vector f, vector g, vector h,
                   vector on_stack);
vector trap_vector_varargs(int count, ...);
