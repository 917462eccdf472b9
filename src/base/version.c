#include "psld.h"

const char *psld_version(void)
{
    return PSLD_VERSION;
}
