/* psld info on data sets. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "info.h"

enum { CLASSES_SHOWN = 20 };

int info_is_data(const char *path)
{
    struct stat info;
    if (strncmp(path, "toy:", 4) == 0) return 1;
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode)) return 1;
    return cli_ends_in(path, ".tar|.tgz|.gz|.bz2|.xz|.zst|.zip|.npz|.bin|-ubyte");
}

json_t *info_describe_data(const psld_data *data, int is_checked)
{
    size_t shape[PSLD_MAX_RANK];
    int rank = psld_data_shape(data, shape);
    json_t *object = json_object(), *sizes = json_array(), *classes = json_object();
    for (int i = 0; i < rank; i++) json_array_append_new(sizes, json_integer((json_int_t)shape[i]));
    for (size_t i = 0; i < psld_data_classes(data); i++)
        json_object_set_new(classes, psld_data_class(data, i),
                            json_integer((json_int_t)psld_data_class_count(data, i)));
    json_object_set_new(object, "kind", json_string("data"));
    json_object_set_new(object, "what", json_string(psld_data_kind(data)));
    json_object_set_new(object, "count", json_integer((json_int_t)psld_data_good(data)));
    json_object_set_new(object, "images", json_boolean(psld_data_is_image(data)));
    json_object_set_new(object, "shape", sizes);
    json_object_set_new(object, "classes", classes);
    json_object_set_new(object, "mixed", json_boolean(psld_data_mixed(data)));
    json_object_set_new(object, "skipped", json_integer((json_int_t)psld_data_skipped(data)));
    json_object_set_new(object, "checked", json_boolean(is_checked));
    return object;
}

void info_print_items(const psld_data *data)
{
    size_t shape[PSLD_MAX_RANK];
    int rank = psld_data_shape(data, shape);
    printf("%" PRIu64 " items of", psld_data_good(data));
    if (psld_data_is_image(data))
        printf(" %zu x %zu pixels%s in %s", shape[2], shape[1],
               psld_data_mixed(data) ? " (about the median) and other sizes" : "", shape[0] == 1 ? "grey" : "colour");
    else
        for (int i = 0; i < rank; i++) printf("%s%zu", i ? " x " : " ", shape[i]);
    printf("%s", psld_data_is_image(data) ? "" : " numbers");
}

static int info_print_text(const char *path, const psld_data *data, int is_checked)
{
    size_t classes = psld_data_classes(data);
    printf("%s: %s, ", path, psld_data_kind(data));
    info_print_items(data);
    printf("\n");
    if (classes) printf("%zu classes:", classes);
    for (size_t i = 0; i < classes && i < CLASSES_SHOWN; i++) {
        printf("%s %s", i ? "," : "", psld_data_class(data, i));
        if (psld_data_class_count(data, i)) printf(" (%" PRIu64 ")", psld_data_class_count(data, i));
    }
    if (classes) printf("%s\n", classes > CLASSES_SHOWN ? ", ..." : "");
    uint64_t skipped = psld_data_skipped(data);
    if (is_checked)
        printf("%" PRIu64 " skipped\n", skipped);
    else
        printf("%" PRIu64 " skipped so far; the images were not decoded (--quick)\n", skipped);
    return EXIT_DONE;
}

static psld_status check_data(psld_data *data)
{
    cli_progress progress;
    cli_progress_begin(&progress, "checking");
    psld_status status = psld_data_check(data, cli_progress_report, &progress);
    cli_progress_end(&progress);
    return status;
}

int info_show_data(const char *path, int quick, int json)
{
    psld_data *data = NULL;
    psld_status status = psld_data_open(path, NULL, &data);
    if (status == PSLD_BAD_INPUT && cli_ends_in(path, ".npz")) return info_show_arrays(path, json);
    if (status == PSLD_OK && !quick) status = check_data(data);
    int exit_code = status != PSLD_OK ? cli_failed(status)
                    : json            ? cli_json_print(info_describe_data(data, !quick))
                                      : info_print_text(path, data, !quick);
    psld_data_free(data);
    return exit_code;
}
