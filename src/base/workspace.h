/* Scratch memory of calls.
 *
 * An object that several threads may use at once has no scratch memory of its own. Each call takes a workspace, uses
 * it alone, and gives it back. The object keeps returned workspaces with the memory they have grown to, so repeated
 * calls allocate nothing. */
#ifndef PSLD_BASE_WORKSPACE_H
#define PSLD_BASE_WORKSPACE_H

#include <stdatomic.h>
#include <stddef.h>

#include "base/status.h"

enum { PSLD_WORKSPACE_ROOMS = 16, PSLD_WORKSPACES_KEPT = 8 };

typedef struct psld_workspace {
    struct {
        void *block;
        size_t bytes;
    } room[PSLD_WORKSPACE_ROOMS];
} psld_workspace;

/* Workspaces that no call uses at the moment. All zeros: none. */
typedef struct psld_workspaces {
    _Atomic(psld_workspace *) kept[PSLD_WORKSPACES_KEPT];
} psld_workspaces;

/* A workspace for this call alone; NULL: out of memory. */
psld_workspace *psld_workspace_take(psld_workspaces *all);
/* NULL is harmless. */
void psld_workspace_give(psld_workspaces *all, psld_workspace *workspace);

/* Makes buffer number `room` hold at least count x width elements of `size` bytes and returns it in *block. Its
 * contents survive a second request only if it need not grow. */
psld_status psld_workspace_room(psld_workspace *workspace, int room, size_t count, size_t width, size_t size,
                                void **block);

/* Releases all workspaces that were given back. */
void psld_workspaces_release(psld_workspaces *all);

#endif
