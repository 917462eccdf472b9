/* Samples in a folder, one picture each, named by number and written as they are drawn.
 *
 * The folder also has samples.json, which tells how its pictures are made. The same command again draws the missing
 * samples, with the same bits as without an interruption. A command with other settings is refused, and so is any
 * command while another process draws into the folder. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sample.h"

enum { PATH_ROOM = 4096 };

#define MANIFEST "samples.json"

/* ---- The manifest ------------------------------------------------------------------------------------------------ */

/* A number that identifies a file of initial states. */
static json_t *fingerprint_of(const psld_array *array)
{
    char text[32];
    snprintf(text, sizeof text, "%016llx", (unsigned long long)psld_array_fingerprint(array));
    return json_string(text);
}

/* Labels, if they are given and not drawn by the library. */
static void describe_labels(const sampling_job *s, json_t *d)
{
    const psld_labels *l = &s->labels.labels;
    if (!s->labels.is_set) return;
    json_t *list = json_array();
    for (size_t i = 0; i < l->count; i++) json_array_append_new(list, json_integer(l->label[i]));
    json_object_set_new(d, "labels", list);
    json_object_set_new(d, "cfg", json_real(l->cfg == PSLD_UNSET ? psld_model_cfg(s->model) : l->cfg));
    json_object_set_new(d, "cfg-range", json_pack("[ff]", l->sigma_min, l->sigma_max));
}

/* Everything that the bits of a picture depend on. */
static json_t *describe_request(const sample_job *job)
{
    const psld_sample_options *o = &job->sampling.options;
    char model[32];
    int adaptive = sampling_is_adaptive(o->sampler);
    json_t *d = json_object();
    snprintf(model, sizeof model, "%016llx", (unsigned long long)psld_model_fingerprint(job->sampling.model));
    json_object_set_new(d, "model", json_string(model));
    json_object_set_new(d, "process", json_string(psld_model_process_name(job->sampling.model)));
    json_object_set_new(d, "seed", json_sprintf("%llu", (unsigned long long)o->seed));
    json_object_set_new(d, "sampler", json_string(o->sampler));
    if (adaptive) {
        json_object_set_new(d, "tol", json_real(o->tolerance));
        json_object_set_new(d, "ode-group", json_integer(o->ode_group));
    } else {
        json_object_set_new(d, "grid", json_string(o->grid));
        json_object_set_new(d, "nfe", json_integer(o->nfe));
        json_object_set_new(d, "order", json_integer(o->order));
        json_object_set_new(d, "eta", json_real(o->eta));
        json_object_set_new(d, "detail", json_real(o->detail));
        json_object_set_new(d, "rho", json_real(o->rho));
    }
    json_object_set_new(d, "eps", json_real(o->eps));
    json_object_set_new(d, "denoise", json_boolean(o->denoise));
    json_object_set_new(d, "clip", json_real(o->clip));
    json_object_set_new(d, "threshold", json_real(o->threshold));
    json_object_set_new(d, "corrector", json_integer(o->corrector));
    if (o->corrector) json_object_set_new(d, "corrector-size", json_real(o->corrector_size));
    json_object_set_new(d, "quantize", json_string(job->sampling.request->quantize));
    describe_labels(&job->sampling, d);
    json_object_set_new(d, "z0", job->start ? fingerprint_of(job->start) : json_null());
    return d;
}

/* PSLD_OK if both are equal; otherwise the message names the first key that differs. */
static psld_status compare_manifest(const char *folder, const json_t *has, json_t *wanted)
{
    const char *key;
    json_t *value;
    json_object_foreach(wanted, key, value)
    {
        const json_t *other = json_object_get(has, key);
        if (other && json_equal(other, value)) continue;
        char *a = other ? json_dumps(other, JSON_ENCODE_ANY) : NULL, *b = json_dumps(value, JSON_ENCODE_ANY);
        psld_status status =
            cli_bad_input("%s: has samples with other settings (%s: %s there, %s now); give another folder", folder,
                          key, a ? a : "not given", b ? b : "?");
        free(a);
        free(b);
        return status;
    }
    if (json_object_size(has) == json_object_size(wanted)) return PSLD_OK;
    return cli_bad_input("%s: %s is not of this version; give another folder", folder, MANIFEST);
}

static psld_status write_manifest(const char *folder, const json_t *description)
{
    char path[PATH_ROOM];
    char *text = json_dumps(description, JSON_INDENT(2) | JSON_REAL_PRECISION(17));
    snprintf(path, sizeof path, "%s/%s", folder, MANIFEST);
    psld_status status = text ? psld_text_save(text, path) : PSLD_NO_MEMORY;
    free(text);
    return status;
}

/* Ignores locks, and files that earlier versions left when they were killed. */
static int is_folder_empty(const char *folder)
{
    static const char *const nothing[] = {".", "..", ".samples.json.tmp", ".psld-lock"};
    int found = 0;
    DIR *dir = opendir(folder);
    if (!dir) return 0;
    for (const struct dirent *entry = readdir(dir); entry && !found; entry = readdir(dir)) {
        found = 1;
        for (int i = 0; i < 4; i++) found = found && strcmp(entry->d_name, nothing[i]) != 0;
    }
    closedir(dir);
    return !found;
}

/* Writes the manifest into an empty folder, or checks that the one in the folder has the same settings. */
static psld_status agree_on_samples(const char *folder, json_t *description)
{
    char path[PATH_ROOM];
    json_error_t error;
    snprintf(path, sizeof path, "%s/%s", folder, MANIFEST);
    if (access(path, F_OK) != 0) {
        if (is_folder_empty(folder)) return write_manifest(folder, description);
        return cli_bad_input("%s: has files but no %s; give a new or empty folder", folder, MANIFEST);
    }
    json_t *has = json_load_file(path, 0, &error);
    if (!has) return cli_bad_input("%s: line %d: %s", path, error.line, error.text);
    psld_status status = json_is_object(has) ? compare_manifest(folder, has, description)
                                             : cli_bad_input("%s: expected an object", path);
    json_decref(has);
    return status;
}

/* Makes the folder if it does not exist, and owns it until the claim is freed. */
static psld_status claim_folder(const sample_job *job, json_t *description, psld_folder_lock **claim)
{
    const char *folder = job->sampling.request->out;
    if (strlen(folder) + 64 > PATH_ROOM) return cli_bad_input("%s: the name is too long", folder);
    psld_status status = psld_folder_make(folder);
    if (status == PSLD_OK) status = psld_folder_lock_take(folder, claim);
    if (status == PSLD_OK) status = agree_on_samples(folder, description);
    return status;
}

/* ---- Pictures ---------------------------------------------------------------------------------------------------- */

static const char *picture_path(const sample_job *job, uint64_t sample, char path[PATH_ROOM])
{
    snprintf(path, PATH_ROOM, "%s/%06llu.png", job->sampling.request->out, (unsigned long long)sample);
    return path;
}

static int is_there(const sample_job *job, uint64_t sample)
{
    char path[PATH_ROOM];
    return access(picture_path(job, sample, path), F_OK) == 0;
}

static size_t count_pictures(const sample_job *job)
{
    size_t count = 0;
    for (size_t i = 0; i < job->n; i++) count += (size_t)is_there(job, i);
    return count;
}

static psld_status save_pictures(void *user, uint64_t first, const psld_array *x)
{
    sample_job *job = user;
    psld_array *pixels = NULL;
    psld_status status = sampling_pixels(&job->sampling, x, &pixels);
    size_t each = status == PSLD_OK ? pixels->count / pixels->shape[0] : 0;
    for (size_t i = 0; status == PSLD_OK && i < x->shape[0]; i++) {
        char path[PATH_ROOM];
        psld_array one = {.type = PSLD_U8, .rank = 3, .count = each, .data = (unsigned char *)pixels->data + i * each};
        memcpy(one.shape, pixels->shape + 1, 3 * sizeof *one.shape);
        if (is_there(job, first + i)) continue;
        status = psld_image_save(&one, picture_path(job, first + i, path));
        if (status == PSLD_OK) job->made++;
    }
    psld_array_free(pixels);
    return status;
}

/* Draws each range of missing samples. A range begins where a group of samples that step together begins. */
static psld_status draw_missing(sample_job *job)
{
    size_t group = sample_group(job), share_begin, share_end;
    psld_status status = PSLD_OK;
    sample_share(job, &share_begin, &share_end);
    job->made = count_pictures(job);
    for (size_t first = share_begin; first < share_end && status == PSLD_OK;) {
        while (first < share_end && is_there(job, first)) first++;
        size_t end = first;
        while (end < share_end && !is_there(job, end)) end++;
        if (first == end) break;
        size_t begin = first / group * group;
        status = sample_draw(job, begin, end - begin, job->made, save_pictures, job);
        first = end;
    }
    return status;
}

psld_status sample_to_folder(sample_job *job)
{
    json_t *description = describe_request(job);
    psld_folder_lock *claim = NULL;
    char here = 0;
    psld_status status = psld_rank() == 0 ? claim_folder(job, description, &claim) : PSLD_OK;
    json_decref(description);
    if (status != PSLD_OK) {
        psld_folder_lock_free(claim);
        return status;
    }
    psld_ranks_merge(&here, 1); /* no rank writes before the folder is claimed */
    status = draw_missing(job);
    psld_ranks_merge(&here, 1);      /* nor reports before all samples are written, */
    job->made = count_pictures(job); /* including those of other ranks */
    psld_folder_lock_free(claim);
    return status;
}
