/* The loader finds drivers by files NAME.icd, each with the name of a library, in a folder that the environment may
 * change. Loading PoCL takes a quarter of a second and 60 MB, too much for every command of a machine without a GPU. */
#include "device/opencl/vendors.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Parts of the names of libraries that have no GPU. */
static const char *const cpu_drivers[] = {"pocl", "intelocl", "oclgrind"};

static int is_cpu_driver(const char *folder, const char *name)
{
    char path[4096], library[256] = "";
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "r");
    if (!file) return 1;
    if (!fgets(library, sizeof library, file)) library[0] = 0;
    fclose(file);
    for (size_t i = 0; i < sizeof cpu_drivers / sizeof *cpu_drivers; i++)
        if (strstr(library, cpu_drivers[i])) return 1;
    return library[0] == 0;
}

int psld_opencl_may_have_gpu(void)
{
    static const char folder[] = "/etc/OpenCL/vendors";
    int others = 0;
    if (getenv("OCL_ICD_VENDORS") || getenv("OCL_ICD_FILENAMES")) return 1;
    DIR *list = opendir(folder);
    if (!list) return 0;
    for (const struct dirent *entry; (entry = readdir(list)) != NULL;) {
        size_t length = strlen(entry->d_name);
        if (length > 4 && strcmp(entry->d_name + length - 4, ".icd") == 0)
            others |= !is_cpu_driver(folder, entry->d_name);
    }
    closedir(list);
    return others;
}
