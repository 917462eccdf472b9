#include "kernels/avx2/tasks.h"

#include <stdatomic.h>

#include "base/threads.h"

#if defined(__AVX2__) && defined(__FMA__)

typedef struct {
    psld_task_fn body;
    void *context;
    ptrdiff_t count;
    atomic_ptrdiff_t next;
} task_list;

static void run_slots(void *context, size_t begin, size_t end)
{
    task_list *list = context;
    for (size_t slot = begin; slot < end; slot++)
        for (;;) {
            ptrdiff_t task = atomic_fetch_add(&list->next, 1);
            if (task >= list->count) return;
            list->body(list->context, (int)slot, task);
        }
}

void psld_tasks_avx2(int slots, ptrdiff_t count, psld_task_fn body, void *context)
{
    task_list list = {.body = body, .context = context, .count = count};
    atomic_init(&list.next, 0);
    psld_parallel((size_t)psld_least(slots, count), 1, run_slots, &list);
}

#endif
