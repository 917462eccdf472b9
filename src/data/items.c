#include "data/items.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"

void *psld_items_create(const psld_items_ops *ops, size_t size)
{
    psld_items *items = psld_alloc(1, size);
    if (items) items->ops = ops;
    return items;
}

void psld_items_free(psld_items *items)
{
    if (!items) return;
    for (size_t i = 0; i < items->class_count; i++) psld_release(items->classes[i]);
    psld_release(items->classes);
    psld_release(items->kind);
    items->ops->free(items);
}

psld_status psld_items_set_kind(psld_items *items, const char *format, ...)
{
    char text[256];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    psld_release(items->kind);
    items->kind = psld_copy_text(text);
    return items->kind ? PSLD_OK : PSLD_NO_MEMORY;
}

psld_status psld_items_add_class(psld_items *items, const char *name, size_t length)
{
    void *classes = items->classes;
    PSLD_TRY(psld_grow(&classes, &items->class_capacity, items->class_count + 1, sizeof *items->classes));
    items->classes = classes;
    char *copy = psld_alloc(length + 1, 1);
    if (!copy) return PSLD_NO_MEMORY;
    memcpy(copy, name, length);
    items->classes[items->class_count++] = copy;
    return PSLD_OK;
}
