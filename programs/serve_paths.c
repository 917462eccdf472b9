#include "serve_paths.h"

#include <string.h>

/* Times 0 ... 1 that are dense near the data. */
static double path_time(size_t i)
{
    double u = (double)i / (SERVE_PATH_POINTS - 1);
    return u * u;
}

typedef struct paths {
    size_t k, count, at; /* at: the next point of the reverse, from the end */
    double z[SERVE_PATHS * PSLD_MAX_K];
    double all[SERVE_PATHS][SERVE_PATH_POINTS][PSLD_MAX_K];
} paths;

static void keep_point(paths *p, size_t point, const double *z)
{
    for (size_t i = 0; i < p->count; i++) memcpy(p->all[i][point], z + i * p->k, p->k * sizeof *z);
}

static psld_status go_forward(const psld_recipe *recipe, const psld_mixture *data, uint64_t seed, paths *p)
{
    psld_status status = psld_mixture_draw(data, recipe, 0, seed, 0, p->count, p->z);
    for (size_t i = 0; i < p->count; i++) p->z[i * p->k] = i % 2 ? 1 : -1;
    for (size_t i = 0; status == PSLD_OK && i < SERVE_PATH_POINTS; i++) {
        if (i) status = psld_recipe_move(recipe, path_time(i - 1), path_time(i), seed, i, 0, p->count, 1, p->z);
        keep_point(p, i, p->z);
    }
    return status;
}

static psld_status watch_reverse(void *user, const psld_evaluation *evaluation)
{
    paths *p = user;
    if (p->at > 0) keep_point(p, --p->at, evaluation->states->z);
    return PSLD_OK;
}

/* Steps of the sampler sscs from one of the times to the one before it. */
static psld_status go_back(const psld_recipe *recipe, const psld_mixture *data, uint64_t seed, paths *p)
{
    char grid[SERVE_PATH_POINTS * PSLD_NUMBER_SIZE], *to = grid, number[PSLD_NUMBER_SIZE];
    psld_sample_options options = PSLD_SAMPLE_DEFAULTS;
    psld_source *source = NULL;
    for (size_t i = SERVE_PATH_POINTS; i-- > 1;)
        to += sprintf(to, "%s%s", to > grid ? "," : "", psld_text_shortest(path_time(i), number));
    options.sampler = "sscs";
    options.grid = grid;
    options.seed = seed;
    options.batch = (int)p->count;
    options.watch = watch_reverse;
    options.watch_user = p;
    p->at = SERVE_PATH_POINTS;
    psld_status status = psld_source_mixture(data, recipe, &source);
    if (status == PSLD_OK) status = psld_sample(recipe, source, &options, 0, p->count, 1, NULL, p->z, NULL);
    if (status == PSLD_OK) keep_point(p, 0, p->z);
    psld_source_free(source);
    return status;
}

static json_t *paths_as_json(const paths *p)
{
    json_t *list = json_array();
    for (size_t i = 0; i < p->count; i++) {
        json_t *path = json_array();
        for (size_t j = 0; j < SERVE_PATH_POINTS; j++)
            json_array_append_new(path, cli_json_numbers(p->all[i][j], p->k));
        json_array_append_new(list, path);
    }
    return list;
}

psld_status serve_paths_add(const psld_recipe *recipe, size_t count, uint64_t seed, json_t *answer)
{
    const double weights[2] = {0.5, 0.5}, means[2] = {-1, 1}, scales[2] = {0.05, 0.05};
    paths p = {.k = (size_t)psld_recipe_get(recipe)->k, .count = count};
    psld_mixture *data;
    json_t *object = json_object(), *times = json_array();
    json_object_set_new(answer, "paths", object);
    for (size_t i = 0; i < SERVE_PATH_POINTS; i++) json_array_append_new(times, cli_json_number(path_time(i)));
    json_object_set_new(object, "t", times);
    psld_status status = psld_mixture_create(2, 1, weights, means, scales, &data);
    if (status != PSLD_OK) return status;
    status = go_forward(recipe, data, seed, &p);
    if (status == PSLD_OK) json_object_set_new(object, "forward", paths_as_json(&p));
    if (status == PSLD_OK) status = go_back(recipe, data, seed, &p);
    if (status == PSLD_OK) json_object_set_new(object, "reverse", paths_as_json(&p));
    psld_mixture_free(data);
    return status;
}
