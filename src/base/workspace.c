#include "base/workspace.h"

#include <assert.h>

#include "base/alloc.h"

static void release_workspace(psld_workspace *workspace)
{
    if (!workspace) return;
    for (int i = 0; i < PSLD_WORKSPACE_ROOMS; i++) psld_release(workspace->room[i].block);
    psld_release(workspace);
}

psld_workspace *psld_workspace_take(psld_workspaces *all)
{
    for (int i = 0; i < PSLD_WORKSPACES_KEPT; i++) {
        psld_workspace *found = atomic_exchange(&all->kept[i], NULL);
        if (found) return found;
    }
    return psld_alloc(1, sizeof(psld_workspace));
}

void psld_workspace_give(psld_workspaces *all, psld_workspace *workspace)
{
    for (int i = 0; workspace && i < PSLD_WORKSPACES_KEPT; i++) {
        psld_workspace *none = NULL;
        if (atomic_compare_exchange_strong(&all->kept[i], &none, workspace)) return;
    }
    release_workspace(workspace);
}

psld_status psld_workspace_room(psld_workspace *workspace, int room, size_t count, size_t width, size_t size,
                                void **block)
{
    size_t elements, bytes;
    assert(room >= 0 && room < PSLD_WORKSPACE_ROOMS);
    if (__builtin_mul_overflow(count, width, &elements) || __builtin_mul_overflow(elements, size, &bytes))
        return psld_fail(PSLD_NO_MEMORY, "out of memory: %zu x %zu elements of %zu bytes asked for", count, width,
                         size);
    if (bytes > workspace->room[room].bytes || !workspace->room[room].block) {
        psld_release(workspace->room[room].block);
        workspace->room[room].bytes = 0;
        workspace->room[room].block = psld_alloc(bytes, 1);
        if (!workspace->room[room].block) return PSLD_NO_MEMORY;
        workspace->room[room].bytes = bytes;
    }
    *block = workspace->room[room].block;
    return PSLD_OK;
}

void psld_workspaces_release(psld_workspaces *all)
{
    for (int i = 0; i < PSLD_WORKSPACES_KEPT; i++) release_workspace(atomic_exchange(&all->kept[i], NULL));
}
