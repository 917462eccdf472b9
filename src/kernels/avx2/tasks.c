#include "kernels/avx2/tasks.h"

#include <assert.h>
#include <stdatomic.h>

#include "base/threads.h"

#if defined(__AVX2__) && defined(__FMA__)

enum { MAX_SLOTS = 256 };

/* What is left of a slot's own tasks, next ... end - 1. */
typedef struct {
    _Alignas(64) atomic_ptrdiff_t next;
    ptrdiff_t end;
} task_share;

typedef struct {
    psld_task_fn body;
    void *context;
    size_t slots;
    task_share shares[MAX_SLOTS];
} task_list;

/* The slot's own tasks first, then what others have left. */
static void run_slots(void *context, size_t begin, size_t end)
{
    task_list *list = context;
    for (size_t slot = begin; slot < end; slot++)
        for (size_t i = 0; i < list->slots; i++) {
            task_share *share = &list->shares[(slot + i) % list->slots];
            for (ptrdiff_t task; (task = atomic_fetch_add(&share->next, 1)) < share->end;)
                list->body(list->context, (int)slot, task);
        }
}

void psld_tasks_avx2(int slots, ptrdiff_t count, psld_task_fn body, void *context)
{
    task_list list;
    list.body = body;
    list.context = context;
    list.slots = (size_t)psld_min(slots, count);
    assert(slots <= MAX_SLOTS);
    for (ptrdiff_t slot = 0; slot < (ptrdiff_t)list.slots; slot++) {
        atomic_init(&list.shares[slot].next, count * slot / (ptrdiff_t)list.slots);
        list.shares[slot].end = count * (slot + 1) / (ptrdiff_t)list.slots;
    }
    psld_parallel(list.slots, 1, run_slots, &list);
}

#endif
