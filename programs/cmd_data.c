/* psld data: looks at data sets, and converts them. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "data.h"
#include "names.h"

enum { NAMES_SHOWN = 100, SHEET_SIZE = 96 };

/* ---- Description of a set ---------------------------------------------------------------------------------------- */

static int is_endless(const psld_data *data)
{
    return psld_data_count(data) >= (uint64_t)1 << 32;
}

/* Items by class, and those of them that are broken. */
static void print_classes(const data_job *job)
{
    for (size_t i = 0; i < psld_data_classes(job->data); i++) {
        if (job->wanted && !job->wanted[i]) continue;
        if (is_endless(job->data))
            printf("  %s\n", psld_data_class(job->data, i));
        else
            printf("  %-20s %" PRIu64 "\n", psld_data_class(job->data, i), psld_data_class_count(job->data, i));
    }
}

static json_t *list_broken(const data_job *job)
{
    char number[32];
    json_t *list = json_array();
    for (uint64_t i = 0; !is_endless(job->data) && i < psld_data_count(job->data); i++) {
        if (!psld_data_is_broken(job->data, i)) continue;
        const char *name = psld_data_name(job->data, i);
        snprintf(number, sizeof number, "item %" PRIu64, i);
        json_array_append_new(list, json_string(name ? name : number));
    }
    return list;
}

static void print_broken(const json_t *broken)
{
    size_t count = json_array_size(broken);
    if (count) printf("%zu broken, left out:\n", count);
    for (size_t i = 0; i < count && i < NAMES_SHOWN; i++)
        printf("  %s\n", json_string_value(json_array_get(broken, i)));
    if (count > NAMES_SHOWN) printf("  ... and %zu more (--json lists all)\n", count - NAMES_SHOWN);
}

static int inspect_data(data_job *job)
{
    const data_request *r = job->request;
    psld_status status = PSLD_OK;
    if (!r->quick) status = psld_data_check(job->data, cli_progress_report, &job->progress);
    cli_progress_end(&job->progress);
    if (status != PSLD_OK) return cli_failed(status);
    json_t *broken = list_broken(job);
    if (r->json) {
        json_t *object = info_describe_data(job->data, !r->quick);
        json_object_set_new(object, "broken", broken);
        json_object_set_new(object, "selected", json_integer((json_int_t)data_count_wanted(job)));
        return cli_json_print(object);
    }
    printf("%s: %s, ", r->path, psld_data_kind(job->data));
    info_print_items(job->data);
    printf("\n");
    print_classes(job);
    if (r->n || r->classes || r->per_class) printf("%" PRIu64 " selected\n", data_count_wanted(job));
    if (!r->quick) print_broken(broken);
    if (!r->quick && json_array_size(broken) == 0) printf("none broken\n");
    json_decref(broken);
    return EXIT_DONE;
}

/* ---- Converting -------------------------------------------------------------------------------------------------- */

static int data_report(const data_job *job, uint64_t written)
{
    const data_request *r = job->request;
    json_t *broken = list_broken(job);
    if (r->json) {
        json_t *object = json_object(), *shape = json_array();
        for (int i = 0; i < job->rank; i++) json_array_append_new(shape, json_integer((json_int_t)job->shape[i]));
        json_object_set_new(object, "what", json_string(psld_data_kind(job->data)));
        json_object_set_new(object, "n", json_integer((json_int_t)written));
        json_object_set_new(object, "shape", shape);
        json_object_set_new(object, "broken", broken);
        json_object_set_new(object, "out", json_string(r->out));
        return cli_json_print(object);
    }
    printf("%" PRIu64 " items of", written);
    for (int i = 0; i < job->rank; i++) printf("%s%zu", i ? " x " : " ", job->shape[i]);
    printf(": %s\n", r->out);
    print_broken(broken);
    json_decref(broken);
    return EXIT_DONE;
}

/* The writer for this set and this output; NULL, with a message, if there is none. */
typedef psld_status (*writer)(data_job *job, uint64_t *written);

static writer choose_writer(const cli_command *command, const data_job *job, int *exit_code)
{
    const char *out = job->request->out;
    int is_plane = job->rank == 1 && job->dim == 2;
    if (cli_ends_in(out, ".npy|.npz")) return data_write_arrays;
    if (cli_ends_in(out, ".png|.svg") && is_plane) return data_write_plot;
    if (cli_ends_in(out, ".png") && job->is_picture) return data_write_sheet;
    if (!cli_ends_in(out, ".png|.svg") && job->is_picture) return data_write_folder;
    *exit_code = cli_wrong_usage(command, "-o %s: %s", out,
                                 job->is_picture ? "pictures are written as .png, .npz, .npy, or into a folder"
                                                 : "these items are numbers; write .npz or .npy");
    return NULL;
}

/* A sheet needs no --size for pictures of several sizes: it shows all of them in one size. */
static psld_status write_sheet_of_sizes(data_request *r, data_job *job, uint64_t *written)
{
    cli_progress progress = job->progress;
    data_close(job);
    r->options.image_size = SHEET_SIZE;
    psld_status status = data_open(r, job);
    job->progress = progress;
    return status == PSLD_OK ? data_write_sheet(job, written) : status;
}

static int convert_data(const cli_command *command, data_request *r, data_job *job)
{
    uint64_t written = 0;
    int exit_code = EXIT_DONE;
    writer write = choose_writer(command, job, &exit_code);
    if (write && write != data_write_sheet) exit_code = sheet_check_zoom(command, r->zoom, 0);
    if (exit_code != EXIT_DONE) return exit_code;
    psld_status status = write(job, &written);
    if (status == PSLD_BAD_ARGUMENT && write == data_write_sheet && r->options.image_size == PSLD_UNSET)
        status = write_sheet_of_sizes(r, job, &written);
    cli_progress_end(&job->progress);
    if (status == PSLD_CANCELLED) {
        cli_complain("interrupted: nothing was written");
        return EXIT_FAILED;
    }
    return status == PSLD_OK ? data_report(job, written) : cli_failed(status);
}

static int data_process(const cli_command *command, data_request *r)
{
    data_job job;
    psld_status status = data_open(r, &job);
    int exit_code = EXIT_FAILED;
    cli_progress_begin(&job.progress, r->out ? "reading" : "checking");
    if (status == PSLD_OK) exit_code = r->out ? convert_data(command, r, &job) : inspect_data(&job);
    cli_progress_end(&job.progress);
    data_close(&job);
    return status == PSLD_OK ? exit_code : cli_failed(status);
}

/* ---- The command ------------------------------------------------------------------------------------------------- */

static const char *resample_names(void)
{
    static char names[NAMES_SIZE];
    return names_join(names_resample, "|", names);
}

static int is_new_file(const char *path)
{
    struct stat about;
    return stat(path, &about) != 0;
}

static int data_check_options(const cli_command *command, data_request *r, long size, const char *channels,
                              const char *fit, const char *resample)
{
    if (size) r->options.image_size = cli_int(size);
    r->options.channels = !channels ? 0 : strcmp(channels, "1") == 0 || strcmp(channels, "grey") == 0 ? 1 : 3;
    r->options.stretch = fit && strcmp(fit, "stretch") == 0;
    const psld_resample_info *filter = resample ? psld_resample_find(resample) : NULL;
    if (filter) r->options.resample = (int)filter->filter;
    r->options.once = 1;
    if (!size && (fit || resample)) return cli_wrong_usage(command, "--fit and --resample need --size");
    int exit_code = sheet_check_zoom(command, r->zoom, r->out && cli_ends_in(r->out, ".png"));
    if (exit_code != EXIT_DONE || !r->out) return exit_code;
    int is_file = cli_ends_in(r->out, ".npy|.npz|.png|.svg");
    if (!is_file && strchr(strrchr(r->out, '/') ? strrchr(r->out, '/') : r->out, '.') && is_new_file(r->out))
        return cli_wrong_usage(command,
                               "-o: expected a name that ends in .npz, .npy, .png or .svg, or a folder, found "
                               "\"%s\"",
                               r->out);
    if (!is_file && !is_new_file(r->out)) return EXIT_DONE;
    return cli_output_possible(r->out) ? EXIT_DONE : EXIT_FAILED;
}

static int data_run(const cli_command *command, int argc, char **argv)
{
    const char *words[16], *fit = NULL, *channels = NULL, *resample = NULL;
    long size = 0;
    int count, exit_code;
    data_request r = {.options = PSLD_DATA_DEFAULTS};
    const cli_option options[] = {
        {"out", 'o', CLI_FILE, "OUT",
         "a folder of .png (one folder for each class), .npz, .npy, or a sheet of pictures or plot of points (.png)",
         &r.out, NULL},
        {"number", 'n', CLI_COUNT, "N", "the first N items (default: all; of endless toys 1000)", &r.n, NULL},
        {"class", 0, CLI_TEXT, "NAME[,NAME]", "only items of these classes", &r.classes, NULL},
        {"per-class", 0, CLI_COUNT, "N", "the first N items of each class", &r.per_class, NULL},
        {"size", 0, CLI_COUNT, "S", "bring images to S x S pixels", &size, NULL},
        {"fit", 0, CLI_TEXT, "crop|stretch", "how images that are not square are fitted (default crop: the middle)",
         &fit, "crop|stretch"},
        {"resample", 0, CLI_TEXT, resample_names(), "resampling filter (default lanczos)", &resample, resample_names()},
        {"channels", 0, CLI_TEXT, "1|3", "convert to grey or colour (default: unchanged)", &channels,
         "1|3|grey|colour"},
        {"test", 0, CLI_FLAG, NULL, "use the test part of sets that have one (MNIST, CIFAR)", &r.options.test, NULL},
        SHEET_OPTION(r.zoom),
        {"quick", 0, CLI_FLAG, NULL, "without -o: do not decode every image to find broken ones", &r.quick, NULL},
        {"json", 0, CLI_FLAG, NULL, "print one JSON object", &r.json, NULL},
        {NULL, 0, CLI_FLAG, NULL, NULL, NULL, NULL},
    };
    if (argc > 16) return cli_wrong_usage(command, "too many words");
    if (!cli_parse(command, options, argc, argv, words, &count, &exit_code)) return exit_code;
    if (count != 1) return cli_wrong_usage(command, "expected one data set, found %d words", count);
    r.path = words[0];
    exit_code = data_check_options(command, &r, size, channels, fit, resample);
    return exit_code == EXIT_DONE ? data_process(command, &r) : exit_code;
}

const cli_command command_data = {
    .name = "data",
    .summary = "looks at data sets and converts them",
    .usage = "DATA [-o OUT] [options]",
    .description =
        "DATA is any data that psld train takes: a folder or archive of images, CIFAR, IDX (MNIST), .npy, .npz, "
        "toy:NAME. Without -o it\n"
        "is described: its kind, the number of items in each class, and broken files.\n\n"
        "OUT is a folder, which gets a PNG file for each image, named by its number, in a folder for each class; .npz "
        "with\n"
        "`images` (u8 [n, h, w] or [n, h, w, channels]), `labels` and `class_names`; .npy with the first of these "
        "alone; or .png, a\n"
        "sheet: ten images of each class, a row each, 64 of a set without classes, or the first N. Points become "
        ".npy, .npz, or a\n"
        "plot. A conversion and its reverse keep all pixels. Broken images are left out and listed. A folder that has "
        "files is\n"
        "never written into, and an interrupted command leaves no output.",
    .examples = "  psld data photos/\n"
                "  psld data mnist/train-images-idx3-ubyte.gz -o digits.png --zoom 2\n"
                "  psld data cifar-10-binary.tar.gz --class cat,dog -n 1000 -o pets\n"
                "  psld data photos/ --size 64 --channels 1 -o small.npz\n"
                "  psld data toy:moons -n 5000 -o moons.npy\n",
    .run = data_run,
};
