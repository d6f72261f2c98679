/* Functions on vectors of WIDTH bytes. See vectors.c. */
#include "vectors.h"

vector trap_vector(vector a, vector b, vector c, vector d, vector e, vector f, vector g, vector h,
                   vector on_stack)
{
    return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + 9 * on_stack;
}

vector trap_vector_varargs(int count, ...)
{
    va_list list;
    va_start(list, count);
    vector sum = {0};
    for (int i = 0; i < count; i++)
        sum += va_arg(list, vector);
    va_end(list);
    return sum;
}
