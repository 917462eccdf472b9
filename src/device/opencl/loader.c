/* The OpenCL library is loaded when devices are first asked for, so that psld is built and runs without it. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/opencl/opencl.h"

static psld_cl_api api;
static int loaded;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* PSLD_OPENCL names another library. */
static const char *library_name(void)
{
    const char *own = getenv("PSLD_OPENCL");
    return own && *own ? own : "libOpenCL.so.1";
}

/* ISO C has no conversion from the address of an object to that of a function. */
static int find(void *library, const char *name, void *function)
{
    void *address = dlsym(library, name);
    memcpy(function, &address, sizeof address);
    return address != NULL;
}

static int load(char *why, size_t size)
{
    const char *name = library_name();
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        if (why) snprintf(why, size, "no OpenCL library (%s)", name);
        return 0;
    }
#define PSLD_CL_FUNCTION(function)                                                                                  \
    if (!find(library, "cl" #function, &api.function)) {                                                            \
        if (why) snprintf(why, size, "the OpenCL library (%s) has no cl%s, expected version 1.2", name, #function); \
        dlclose(library);                                                                                           \
        return 0;                                                                                                   \
    }
#include "device/opencl/functions.def"
#undef PSLD_CL_FUNCTION
    return 1;
}

const psld_cl_api *psld_cl_load(char *why, size_t size)
{
    pthread_mutex_lock(&lock);
    if (!loaded) loaded = load(why, size);
    pthread_mutex_unlock(&lock);
    return loaded ? &api : NULL;
}
