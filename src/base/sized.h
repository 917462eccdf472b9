/* Structs that callers allocate: options, and results that the library fills.
 *
 * Each begins with `size_t size`, which its initialiser macro sets to the size that the caller was compiled with. A
 * program with an older header has a smaller struct. So a public function first copies what that size covers over its
 * own defaults, and looks only at the copy; of a result it writes only what that size covers. All code behind the public
 * functions sees whole structs. */
#ifndef PSLD_BASE_SIZED_H
#define PSLD_BASE_SIZED_H

#include "base/status.h"

/* Whether the struct at `callers` has a size between that of its first field and `size`, which is the library's. The
 * message of a failure names `macro`. */
psld_status psld_sized_check(const void *callers, size_t size, const char *macro);

/* Copies the caller's struct over `own`, which holds defaults and is `size` bytes long. NULL leaves the defaults. */
psld_status psld_sized_copy(const void *callers, void *own, size_t size, const char *macro);
/* Copies `own` into the caller's struct, which has been checked and keeps its size. */
void psld_sized_write(void *callers, const void *own);

/* Fills *own, a whole struct of `type` whose initialiser is `macro`, from the caller's struct. */
#define PSLD_SIZED_READ(type, callers, own, macro) \
    (*(own) = (type)macro, psld_sized_copy((callers), (own), sizeof *(own), #macro))

/* Fills in a number that the caller left unset: PSLD_UNSET, or also 0, for numbers of which 0 makes no sense. */
#define PSLD_FILL_UNSET(number, value) ((number) = (number) == PSLD_UNSET ? (value) : (number))
#define PSLD_FILL_ZERO(number, value)  ((number) = (number) == PSLD_UNSET || (number) == 0 ? (value) : (number))

#endif
