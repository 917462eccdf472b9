/* The cost of sampling: a short run is timed, including steps and noise, and the rest is multiplication. */
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "sample.h"

typedef struct estimate {
    size_t batch, bytes;
    uint64_t nfe;
    double each, seconds; /* seconds of one evaluation of one sample; of everything */
} estimate;

static psld_status ignore_samples(void *user, uint64_t first, const psld_array *x)
{
    (void)user, (void)first, (void)x;
    return PSLD_OK;
}

/* Seconds of a run with about `nfe` evaluations, which reports their exact number. */
static psld_status time_sampling(const sample_job *job, const psld_sample_options *options, size_t samples,
                                 uint64_t *nfe, double *seconds)
{
    double began = cli_seconds();
    psld_status status = psld_model_draw(job->sampling.model, options, 0, samples, NULL, 0, ignore_samples, NULL, nfe);
    *seconds = cli_seconds() - began;
    return status;
}

/* The number of evaluations of an adaptive sampler is only known after sampling; one sample is drawn to find out. */
static psld_status count_evaluations(const sample_job *job, uint64_t *nfe)
{
    double seconds;
    psld_sample_options options = job->sampling.options;
    *nfe = (uint64_t)options.nfe;
    if (!sampling_is_adaptive(options.sampler)) return PSLD_OK;
    options.progress = NULL;
    return time_sampling(job, &options, 1, nfe, &seconds);
}

/* Seconds per evaluation of one sample, by a run of about `nfe` evaluations. */
static psld_status measure_once(const sample_job *job, psld_sample_options options, int nfe, size_t batch, double *each,
                                double *seconds)
{
    uint64_t evaluations = 0;
    if (options.nfe == 0 || options.nfe > nfe) {
        options.nfe = nfe;
        options.grid = NULL; /* a list of times would be too long */
    }
    psld_status status = time_sampling(job, &options, batch, &evaluations, seconds);
    if (status == PSLD_OK) *each = *seconds / ((double)evaluations * (double)batch);
    return status;
}

/* The first run plans the network and touches all memory that it will need. If even that was slow, measuring again
 * is not worth the wait. */
static psld_status measure_sampling(const sample_job *job, estimate *e)
{
    psld_sample_options options = job->sampling.options;
    double seconds = 0, each = 0;
    int steps = 1 + options.corrector;
    options.progress = NULL;
    if (sampling_is_adaptive(options.sampler)) options.sampler = "euler-ode";
    e->batch = (size_t)options.batch < job->n ? (size_t)options.batch : job->n;
    psld_status status = measure_once(job, options, steps + 2, e->batch, &e->each, &seconds);
    for (int i = 0; i < 2 && status == PSLD_OK && seconds < 1; i++) {
        status = measure_once(job, options, 4 * steps + 3, e->batch, &each, &seconds);
        if (each < e->each) e->each = each;
    }
    return status;
}

static int estimate_print_json(const sample_job *job, const estimate *e)
{
    json_t *object = json_object();
    json_object_set_new(object, "n", json_integer((json_int_t)job->n));
    json_object_set_new(object, "nfe", json_integer((json_int_t)e->nfe));
    json_object_set_new(object, "batch", json_integer((json_int_t)e->batch));
    json_object_set_new(object, "seconds_per_evaluation", cli_json_number(e->each));
    json_object_set_new(object, "seconds", cli_json_number(e->seconds));
    json_object_set_new(object, "peak_bytes", json_integer((json_int_t)e->bytes));
    json_object_set_new(object, "device_bytes", json_integer((json_int_t)psld_model_bytes(job->sampling.model)));
    cli_device_report(object, psld_model_device(job->sampling.model));
    return cli_json_print(object);
}

psld_status sample_estimate(sample_job *job)
{
    estimate e = {0};
    char whole[CLI_DURATION], room[CLI_DEVICE_ROOM], more[CLI_DEVICE_ROOM + 32] = "";
    struct rusage usage;
    psld_status status = measure_sampling(job, &e);
    if (status == PSLD_OK) status = count_evaluations(job, &e.nfe);
    if (status != PSLD_OK) return status;
    getrusage(RUSAGE_SELF, &usage);
    /* a folder is written during sampling; a file is kept in memory until the end */
    int keeps = job->sampling.request->out && cli_ends_in(job->sampling.request->out, ".npy|.npz|.png|.svg");
    e.bytes = (size_t)usage.ru_maxrss * 1024 + (keeps ? job->n * job->sampling.dim * sizeof(float) : 0);
    e.seconds = e.each * (double)e.nfe * (double)job->n;
    job->sampling.nfe = e.nfe;
    if (job->sampling.request->json)
        return estimate_print_json(job, &e) == EXIT_DONE ? PSLD_OK : cli_bad_input("no output");
    const char *device = psld_model_device(job->sampling.model);
    if (*cli_device_room(device, room))
        snprintf(more, sizeof more, ", %.0f MB%s", (double)psld_model_bytes(job->sampling.model) / 1e6, room);
    printf(
        "%zu samples, %llu evaluations each: %s with batches of %zu and %d threads (%.3g ms per evaluation), %.0f MB "
        "of memory%s\n",
        job->n, (unsigned long long)e.nfe, cli_duration(e.seconds, whole), e.batch, psld_threads_get(), 1e3 * e.each,
        (double)e.bytes / 1e6, more);
    return PSLD_OK;
}
