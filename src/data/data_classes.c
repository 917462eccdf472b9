/* Classes of a data set: their order, names and sizes. */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "data/data_private.h"

int32_t psld_data_label(const psld_data *data, uint64_t index)
{
    int32_t label = index < data->items->count ? data->items->ops->label(data->items, index) : -1;
    return label >= 0 && data->new_label ? data->new_label[label] : label;
}

typedef struct class_name {
    const char *name;
    size_t label;
} class_name;

/* By name, then by label: of equal names the first is used. */
static int compare_class_names(const void *a, const void *b)
{
    const class_name *x = a, *y = b;
    int order = strcmp(x->name, y->name);
    return order ? order : (x->label > y->label) - (x->label < y->label);
}

/* The first of the sorted classes with this name, or NULL. */
static const class_name *find_class(const class_name *sorted, size_t count, const char *name)
{
    size_t begin = 0, end = count;
    while (begin < end) {
        size_t middle = begin + (end - begin) / 2;
        if (strcmp(sorted[middle].name, name) < 0)
            begin = middle + 1;
        else
            end = middle;
    }
    return begin < count && strcmp(sorted[begin].name, name) == 0 ? &sorted[begin] : NULL;
}

static psld_status map_labels(psld_data *data, const class_name *sorted)
{
    const psld_items *items = data->items;
    for (size_t i = 0; i < items->class_count; i++) {
        const class_name *found = find_class(sorted, (size_t)data->options.class_count, items->classes[i]);
        if (!found)
            return psld_fail(PSLD_BAD_INPUT, "%s: its class \"%s\" is not among the classes given", data->path,
                             items->classes[i]);
        data->new_label[i] = (int32_t)found->label;
    }
    return PSLD_OK;
}

psld_status psld_data_order_classes(psld_data *data)
{
    const psld_data_options *o = &data->options;
    const psld_items *items = data->items;
    size_t count = (size_t)o->class_count;
    if (!o->classes) return PSLD_OK;
    data->new_label = psld_alloc(items->class_count, sizeof *data->new_label);
    data->classes = psld_alloc(count, sizeof *data->classes);
    if (!data->new_label || !data->classes) return PSLD_NO_MEMORY;
    for (size_t i = 0; i < count; i++)
        if (!(data->classes[i] = psld_copy_text(o->classes[i]))) return PSLD_NO_MEMORY;
    class_name *sorted = psld_alloc(count, sizeof *sorted);
    if (!sorted) return PSLD_NO_MEMORY;
    for (size_t i = 0; i < count; i++) sorted[i] = (class_name){o->classes[i], i};
    if (count > 1) qsort(sorted, count, sizeof *sorted, compare_class_names);
    psld_status status = map_labels(data, sorted);
    psld_release(sorted);
    return status;
}

psld_status psld_data_count_classes(psld_data *data)
{
    size_t classes = psld_data_classes(data);
    data->sizes = psld_alloc(classes, sizeof *data->sizes);
    if (!data->sizes) return PSLD_NO_MEMORY;
    for (uint64_t i = 0; classes && !data->items->endless && i < data->items->count; i++) {
        int32_t label = psld_data_label(data, i);
        if (label >= 0) atomic_fetch_add(&data->sizes[label], 1);
    }
    return PSLD_OK;
}

size_t psld_data_classes(const psld_data *data)
{
    return data->classes ? (size_t)data->options.class_count : data->items->class_count;
}

const char *psld_data_class(const psld_data *data, size_t index)
{
    if (index >= psld_data_classes(data)) return NULL;
    return data->classes ? data->classes[index] : data->items->classes[index];
}

uint64_t psld_data_class_count(const psld_data *data, size_t index)
{
    return index < psld_data_classes(data) ? (uint64_t)atomic_load(&data->sizes[index]) : 0;
}
