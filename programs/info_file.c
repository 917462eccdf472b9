/* What psld info says of a picture and of arrays. */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "info.h"

/* ---- Pictures ---------------------------------------------------------------------------------------------------- */

int info_show_image(const char *path, int json)
{
    const char *format;
    size_t shape[3];
    char size[INFO_SIZE];
    psld_array *image = NULL;
    psld_status status = psld_image_inspect(path, &format, shape);
    if (status == PSLD_OK) status = psld_image_load(path, &image); /* whether the file is complete */
    psld_array_free(image);
    if (status != PSLD_OK) return cli_failed(status);
    if (!json) {
        printf("%s: %s image of %zu x %zu pixels in %s, %s\n", path, format, shape[2], shape[1],
               shape[0] == 1 ? "grey" : "colour", info_size(path, size));
        return EXIT_DONE;
    }
    json_t *object = json_object();
    json_object_set_new(object, "kind", json_string("image"));
    json_object_set_new(object, "format", json_string(format));
    json_object_set_new(object, "width", json_integer((json_int_t)shape[2]));
    json_object_set_new(object, "height", json_integer((json_int_t)shape[1]));
    json_object_set_new(object, "channels", json_integer((json_int_t)shape[0]));
    return cli_json_print(object);
}

/* ---- Arrays ------------------------------------------------------------------------------------------------------ */

static json_t *describe_array(const char *type, int rank, const size_t *shape)
{
    json_t *object = json_object(), *sizes = json_array();
    for (int i = 0; i < rank; i++) json_array_append_new(sizes, json_integer((json_int_t)shape[i]));
    json_object_set_new(object, "type", json_string(type));
    json_object_set_new(object, "shape", sizes);
    return object;
}

static void print_shape(int rank, const size_t *shape)
{
    printf("[");
    for (int i = 0; i < rank; i++) printf("%s%zu", i ? ", " : "", shape[i]);
    printf("]");
}

/* What the array is as a data set; prints nothing if it cannot be one. */
static void print_as_data(const char *path)
{
    psld_data *data = NULL;
    if (psld_data_open(path, NULL, &data) == PSLD_OK) {
        printf("  as data       ");
        info_print_items(data);
        printf("\n");
    }
    psld_data_free(data);
}

int info_show_array(const char *path, int json)
{
    psld_array array;
    char size[INFO_SIZE];
    psld_status status = psld_array_inspect(path, &array);
    if (status != PSLD_OK) return cli_failed(status);
    if (!json) {
        printf("%s: array of %s ", path, psld_type_name(array.type));
        print_shape(array.rank, array.shape);
        printf(", %s\n", info_size(path, size));
        print_as_data(path);
        return EXIT_DONE;
    }
    json_t *object = describe_array(psld_type_name(array.type), array.rank, array.shape);
    json_object_set_new(object, "kind", json_string("array"));
    return cli_json_print(object);
}

static void print_entry(void *user, const char *name, const char *type, int rank, const size_t *shape)
{
    (void)user;
    printf("  %-13s %s ", name, type);
    print_shape(rank, shape);
    printf("\n");
}

static void add_entry(void *user, const char *name, const char *type, int rank, const size_t *shape)
{
    json_t *row = describe_array(type, rank, shape);
    json_object_set_new(row, "name", json_string(name));
    json_array_append_new(user, row);
}

/* Not every .npz is a data set: those of statistics and results are not. */
int info_show_arrays(const char *path, int json)
{
    char size[INFO_SIZE];
    json_t *rows = json_array();
    psld_status status = psld_npz_list(path, add_entry, rows);
    if (status != PSLD_OK) {
        json_decref(rows);
        return cli_failed(status);
    }
    if (json) {
        json_t *object = json_object();
        json_object_set_new(object, "kind", json_string("arrays"));
        json_object_set_new(object, "arrays", rows);
        return cli_json_print(object);
    }
    printf("%s: %zu arrays, %s\n", path, json_array_size(rows), info_size(path, size));
    json_decref(rows);
    status = psld_npz_list(path, print_entry, NULL);
    return status == PSLD_OK ? EXIT_DONE : cli_failed(status);
}

/* ---- By the first bytes ------------------------------------------------------------------------------------------ */

int info_begins_with(const char *path, const char *bytes, size_t count)
{
    char head[32];
    struct stat about;
    FILE *file =
        stat(path, &about) == 0 && S_ISREG(about.st_mode) ? fopen(path, "rb") : NULL; /* opening a pipe would wait */
    size_t size = file ? fread(head, 1, sizeof head, file) : 0;
    if (file) fclose(file);
    return size >= count && memcmp(head, bytes, count) == 0;
}

int info_is_image(const char *path)
{
    return info_begins_with(path, "\x89PNG", 4) || info_begins_with(path, "\xff\xd8\xff", 3) ||
           (info_begins_with(path, "RIFF", 4) && cli_ends_in(path, ".webp|.WEBP"));
}
