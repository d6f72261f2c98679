/* dlmopen: a library in a namespace of its own, with a C library of its own.
 * usage: namespaces PLUGIN */
#define _GNU_SOURCE
#include "trap.h"

#include <dlfcn.h>

int main(int argc, char **argv)
{
    for (int i = 0; i < 2; i++) {
        void *handle = dlmopen(LM_ID_NEWLM, argv[argc - 1], RTLD_NOW);
        if (!handle)
            puts(dlerror());
        CHECK(handle);
        long (*work)(long) = (long (*)(long))dlsym(handle, "plugin_work");
        printf("%ld\n", work(100));
        Lmid_t id;
        CHECK(dlinfo(handle, RTLD_DI_LMID, &id) == 0 && id != LM_ID_BASE);
        if (i == 0)
            CHECK(dlclose(handle) == 0);
    }
    return 0;
}
