/* The process lab: the analysis of a recipe, in one answer. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "recipe_json.h"
#include "serve.h"
#include "serve_paths.h"

enum { MOST_TIMES = 1024, MOST_CURVES = 512, MOST_RECIPES = 8 };

/* ---- A recipe as it is given ------------------------------------------------------------------------------------- */

/* The length of the name: a space before "key=" ends it, as for psld_recipe_open. Names of files may have others. */
static size_t name_length(const char *words)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
    for (const char *space = words; (space = strpbrk(space, " \t")); space++) {
        const char *key = space + strspn(space, " \t");
        size_t length = strspn(key, letters);
        if (!*key || (length > 0 && key[length] == '=')) return (size_t)(space - words);
    }
    return strlen(words);
}

/* It begins with a preset, or a file that is opened here. */
static char *text_of_words(const char *words, serve_files *files)
{
    char first[SERVE_URL_SIZE], *text = NULL;
    const char *path;
    words += strspn(words, " \t");
    size_t length = name_length(words);
    if (length >= sizeof first) return cli_bad_input("recipe: the name is too long"), NULL;
    snprintf(first, sizeof first, "%.*s", (int)length, words);
    int is_file = strchr(first, '.') || strchr(first, '/') || strchr(first, ':');
    if (!is_file) return strdup(words); /* a preset, or the library's message on what it might be */
    serve_found found = serve_files_add(files, serve.folder, first, S_IFREG, &path);
    if (found != SERVE_FOUND) return cli_bad_input("%s: %s", first, serve_found_text(found)), NULL;
    size_t size = strlen(path) + strlen(words + length) + 1;
    text = malloc(size);
    if (text) snprintf(text, size, "%s%s", path, words + length);
    return text;
}

/* "psld gamma=0.02" for keys of a preset; what has no such line is called a file, as it can be saved. */
static void name_of_object(const json_t *given, char *name, size_t size)
{
    const char *key, *preset = json_string_value(json_object_get(given, "preset"));
    json_t *value;
    size_t used = (size_t)snprintf(name, size, "%.60s", preset ? preset : "recipe.yaml");
    if (!preset) return;
    json_object_foreach((json_t *)(uintptr_t)given, key, value)
    {
        char *text = strcmp(key, "preset") ? json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(17)) : NULL;
        char number[PSLD_NUMBER_SIZE];
        if (text && used < size)
            used += (size_t)snprintf(name + used, size - used, " %s=%s", key,
                                     json_is_real(value) ? psld_text_shortest(json_real_value(value), number) : text);
        free(text);
    }
}

psld_status serve_recipe_text(const json_t *given, serve_files *files, char **text)
{
    *text = NULL;
    cli_bad_input("recipe: expected a text or an object");
    if (json_is_string(given)) *text = text_of_words(json_string_value(given), files);
    if (json_is_object(given)) {
        const char *path;
        char name[512], *yaml = serve_json_text(given);
        name_of_object(given, name, sizeof name);
        if (yaml && serve_files_add_bytes(files, name, yaml, strlen(yaml), &path)) *text = strdup(path);
        free(yaml);
    }
    return *text ? PSLD_OK : PSLD_BAD_INPUT;
}

/* A name without a dot may still be a file beside the server, which is none of the client's business. */
static psld_status open_words(const char *words, serve_files *files, psld_recipe **recipe)
{
    char first[SERVE_URL_SIZE];
    char *text = text_of_words(words, files);
    if (!text) return PSLD_BAD_INPUT;
    snprintf(first, sizeof first, "%.*s", (int)name_length(text), text);
    int is_named = !strchr(first, '/') && !psld_preset_find(first);
    psld_status status = is_named ? PSLD_BAD_INPUT : psld_recipe_open(text, recipe);
    if (is_named) cli_bad_input("%s", psld_error_text());
    free(text);
    return status;
}

psld_status serve_recipe_open(const json_t *given, serve_files *files, psld_recipe **recipe)
{
    *recipe = NULL;
    if (json_is_string(given)) return open_words(json_string_value(given), files, recipe);
    if (!json_is_object(given)) return cli_bad_input("recipe: expected a text or an object");
    char *yaml = serve_json_text(given);
    psld_status status = yaml ? psld_recipe_parse(yaml, "recipe", recipe) : PSLD_NO_MEMORY;
    free(yaml);
    return status;
}

/* ---- As a file --------------------------------------------------------------------------------------------------- */

static void put_numbers(FILE *to, const double *numbers, int count)
{
    char text[PSLD_NUMBER_SIZE];
    fputc('[', to);
    for (int i = 0; i < count; i++) fprintf(to, "%s%s", i ? ", " : "", psld_text_shortest(numbers[i], text));
    fputc(']', to);
}

static void put_matrix(FILE *to, const char *name, const double *numbers, int k)
{
    fprintf(to, "%s: [", name);
    for (int i = 0; i < k; i++) {
        if (i) fprintf(to, ", ");
        put_numbers(to, numbers + i * k, k);
    }
    fprintf(to, "]\n");
}

static void put_list(FILE *to, const char *name, const double *numbers, int count)
{
    fprintf(to, "%s: ", name);
    put_numbers(to, numbers, count);
    fputc('\n', to);
}

char *serve_recipe_yaml(const psld_recipe *recipe)
{
    const psld_recipe_spec *spec = psld_recipe_get(recipe);
    const double beta[2] = {spec->beta_min, spec->beta_max};
    char *text = NULL, number[PSLD_NUMBER_SIZE];
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    if (!to) return NULL;
    json_t *name = json_string(spec->name);
    char *quoted = name ? json_dumps(name, JSON_ENCODE_ANY) : NULL; /* a text of JSON is one of YAML */
    if (quoted) fprintf(to, "name: %s\n", quoted);
    free(quoted);
    json_decref(name);
    put_matrix(to, "D", spec->D, spec->k);
    put_matrix(to, "Q", spec->Q, spec->k);
    if (spec->k > 1) put_list(to, "mass", spec->mass, spec->k - 1);
    if (spec->k > 1) put_list(to, "init", spec->init, spec->k - 1);
    put_list(to, "beta", beta, 2);
    fprintf(to, "stabiliser: %s\n", psld_text_shortest(spec->stabiliser, number));
    if (spec->k > 1) fprintf(to, "factor: %s\n", recipe_factor_name(spec));
    if (spec->k > 1) fprintf(to, "kernel: %s\n", spec->mode == PSLD_DSM ? "dsm" : "hsm");
    fclose(to);
    return text;
}

/* ---- Curves ------------------------------------------------------------------------------------------------------ */

/* Half of the times even in log t, half in t: both kinds of axes show all of it. */
static double curve_time(int i, int count)
{
    int half = count / 2;
    if (i < half) return pow(10, -5 + 4.0 * i / half);
    return i == count - 1 ? 1 : 0.1 + 0.9 * (i - half) / (count - half - 1);
}

typedef struct curves {
    json_t *t, *sigma, *distance, *mean[PSLD_MAX_K * PSLD_MAX_K], *cov[PSLD_MAX_K * PSLD_MAX_K], *first[PSLD_MAX_K],
        *second[PSLD_MAX_K];
} curves;

static psld_status add_time(const psld_recipe *recipe, double t, psld_mode mode, const curves *c)
{
    int k = psld_recipe_get(recipe)->k;
    double mean[PSLD_MAX_K * PSLD_MAX_K], cov[PSLD_MAX_K * PSLD_MAX_K], sigma = 0, distance = 0, first[PSLD_MAX_K],
                                                                        second[PSLD_MAX_K];
    psld_status status = psld_recipe_kernel(recipe, t, mode, mean, cov, NULL);
    if (status == PSLD_OK) status = psld_recipe_sigma(recipe, t, &sigma);
    if (status == PSLD_OK) status = psld_recipe_distance(recipe, t, &distance);
    if (status == PSLD_OK) status = psld_recipe_error_factors(recipe, t, first, second);
    if (status != PSLD_OK) return status;
    json_array_append_new(c->t, cli_json_number(t));
    json_array_append_new(c->sigma, cli_json_number(sigma));
    json_array_append_new(c->distance, cli_json_number(distance));
    for (int i = 0; i < k * k; i++) json_array_append_new(c->mean[i], cli_json_number(mean[i]));
    for (int i = 0; i < k * k; i++) json_array_append_new(c->cov[i], cli_json_number(cov[i]));
    for (int i = 0; i < k; i++) json_array_append_new(c->first[i], cli_json_number(first[i]));
    for (int i = 0; i < k; i++) json_array_append_new(c->second[i], cli_json_number(second[i]));
    return PSLD_OK;
}

static json_t *add_list(json_t *object, const char *key)
{
    json_t *list = json_array();
    json_object_set_new(object, key, list);
    return list;
}

/* [rows] or [rows][columns] lists, all of them in `lists`. */
static void add_lists(json_t *object, const char *key, int rows, int columns, json_t **lists)
{
    json_t *all = add_list(object, key);
    for (int i = 0; i < rows; i++) {
        json_t *row = json_array();
        json_array_append_new(all, row);
        if (!columns) lists[i] = row;
        for (int j = 0; j < columns; j++) {
            lists[i * columns + j] = json_array();
            json_array_append_new(row, lists[i * columns + j]);
        }
    }
}

static psld_status add_curves(const psld_recipe *recipe, int count, psld_mode mode, json_t *answer)
{
    curves c;
    int k = psld_recipe_get(recipe)->k;
    json_t *object = json_object();
    json_object_set_new(answer, "curves", object);
    c.t = add_list(object, "t");
    c.sigma = add_list(object, "sigma");
    c.distance = add_list(object, "distance");
    add_lists(object, "mean", k, k, c.mean);
    add_lists(object, "cov", k, k, c.cov);
    add_lists(object, "lambda", k, 0, c.second);
    add_lists(object, "lambda_first_order", k, 0, c.first);
    psld_status status = PSLD_OK;
    for (int i = 0; status == PSLD_OK && i < count; i++) status = add_time(recipe, curve_time(i, count), mode, &c);
    return status;
}

/* ---- The answer -------------------------------------------------------------------------------------------------- */

typedef struct wanted {
    double at[MOST_TIMES];
    size_t count;
    psld_mode mode;
    long curves, paths, seed;
} wanted;

static const double usual_times[] = {1e-5, 1e-4, 1e-3, 0.01, 0.1, 0.2, 0.5, 1};

json_t *serve_recipe_describe(const psld_recipe *recipe)
{
    json_t *object = NULL;
    psld_analysis analysis = PSLD_ANALYSIS_EMPTY;
    psld_status status = recipe_json(recipe, usual_times, sizeof usual_times / sizeof *usual_times, PSLD_HSM, &object);
    if (status == PSLD_OK) status = psld_recipe_analyse(recipe, &analysis);
    if (status != PSLD_OK) {
        json_decref(object);
        return json_pack("{s:b, s:s}", "valid", 0, "error", psld_error_text());
    }
    char *yaml = serve_recipe_yaml(recipe);
    json_object_set_new(object, "valid", json_true());
    json_object_set_new(object, "rate", cli_json_number(analysis.rate));
    if (yaml) json_object_set_new(object, "yaml", json_string(yaml));
    free(yaml);
    return object;
}

/* The command line that prints the same. A recipe given by keys goes in a file, which the page can save. */
static json_t *command_of(const json_t *given, const wanted *w)
{
    char text[2048], number[PSLD_NUMBER_SIZE], name[512];
    if (json_is_object(given)) name_of_object(given, name, sizeof name);
    const char *words = json_is_string(given) ? json_string_value(given) : name;
    size_t used = (size_t)snprintf(text, 1024, "psld recipe %s --at ", words);
    if (used >= 1024) return json_null();
    for (size_t i = 0; i < w->count && used + 64 < sizeof text; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", i ? "," : "",
                                 psld_text_shortest(w->at[i], number));
    snprintf(text + used, sizeof text - used, "%s --json", w->mode == PSLD_DSM ? " --mode dsm" : "");
    return json_string(text);
}

static json_t *analyse_recipes(const json_t *given, const wanted *w)
{
    char message[2048];
    serve_files files = {0};
    psld_recipe *recipe;
    psld_analysis analysis = PSLD_ANALYSIS_EMPTY;
    json_t *answer = NULL;
    cli_listener listener = {.progress = NULL};
    cli_listen(&listener);
    psld_status status = serve_recipe_open(given, &files, &recipe);
    if (status == PSLD_OK) status = recipe_json(recipe, w->at, w->count, w->mode, &answer);
    if (status == PSLD_OK) status = psld_recipe_analyse(recipe, &analysis);
    if (status == PSLD_OK && w->curves) status = add_curves(recipe, (int)w->curves, w->mode, answer);
    if (status == PSLD_OK && w->paths) status = serve_paths_add(recipe, (size_t)w->paths, (uint64_t)w->seed, answer);
    if (status == PSLD_OK) {
        char *yaml = serve_recipe_yaml(recipe);
        json_object_set_new(answer, "valid", json_true());
        json_object_set_new(answer, "rate", cli_json_number(analysis.rate));
        if (yaml) json_object_set_new(answer, "yaml", json_string(yaml));
        json_object_set_new(answer, "command", command_of(given, w));
        free(yaml);
    } else {
        cli_failed(status);
        serve_files_rename(&files, listener.message, message, sizeof message);
        json_decref(answer);
        answer = json_pack("{s:b, s:s}", "valid", 0, "error", message);
    }
    cli_listen(NULL);
    psld_recipe_free(recipe);
    serve_files_close(&files);
    return answer;
}

static enum MHD_Result answer_recipes(serve_request *request, const json_t *recipe, const json_t *recipes,
                                      const wanted *w)
{
    for (size_t i = 0; i < w->count; i++)
        if (!(w->at[i] >= 0 && w->at[i] <= 1)) return serve_refuse(request, 400, "at: expected times in [0, 1]");
    if (recipe) return serve_answer_json(request, 200, analyse_recipes(recipe, w));
    json_t *list = json_array();
    for (size_t i = 0; i < json_array_size(recipes); i++)
        json_array_append_new(list, analyse_recipes(json_array_get(recipes, i), w));
    return serve_answer_json(request, 200, json_pack("{s:o}", "recipes", list));
}

/* A whole number of the body, or the default. */
static int body_number(const json_t *body, const char *key, long most, long *number)
{
    const json_t *value = json_object_get(body, key);
    if (!value) return 1;
    *number = json_is_integer(value) ? (long)json_integer_value(value) : -1;
    return *number >= 0 && *number <= most;
}

static int set_mode(const char *text, psld_mode *mode)
{
    *mode = text && strcmp(text, "dsm") == 0 ? PSLD_DSM : PSLD_HSM;
    return !text || strcmp(text, "dsm") == 0 || strcmp(text, "hsm") == 0;
}

static int read_times(const json_t *at, wanted *w)
{
    if (at && (!json_is_array(at) || json_array_size(at) > MOST_TIMES)) return 0;
    if (at) w->count = json_array_size(at);
    for (size_t i = 0; at && i < w->count; i++) {
        if (!json_is_number(json_array_get(at, i))) return 0;
        w->at[i] = json_number_value(json_array_get(at, i));
    }
    return 1;
}

static void set_usual(wanted *w)
{
    memcpy(w->at, usual_times, sizeof usual_times);
    w->count = sizeof usual_times / sizeof *usual_times;
    w->curves = w->paths = w->seed = 0;
    w->mode = PSLD_HSM;
}

enum MHD_Result serve_recipe_post(serve_request *request)
{
    static const char *const keys[] = {"recipe", "recipes", "at", "mode", "curves", "paths", "seed", NULL};
    const json_t *body = request->json, *mode = json_object_get(body, "mode");
    const json_t *recipe = json_object_get(body, "recipe"), *recipes = json_object_get(body, "recipes");
    const char *unknown = serve_json_unknown(body, keys);
    wanted w;
    set_usual(&w);
    if (unknown) return serve_refuse(request, 400, "unknown key \"%s\"", unknown);
    if (!recipe == !recipes || (recipes && (!json_is_array(recipes) || json_array_size(recipes) > MOST_RECIPES)))
        return serve_refuse(request, 400, "expected either recipe or recipes, a list of at most %d", MOST_RECIPES);
    if (!read_times(json_object_get(body, "at"), &w))
        return serve_refuse(request, 400, "at: expected a list of at most %d times", MOST_TIMES);
    if (!body_number(body, "curves", MOST_CURVES, &w.curves) || !body_number(body, "paths", SERVE_PATHS, &w.paths) ||
        !body_number(body, "seed", 1L << 62, &w.seed))
        return serve_refuse(request, 400, "expected curves from 0 to %d, paths from 0 to %d, and a seed from 0 on",
                            MOST_CURVES, SERVE_PATHS);
    if ((mode && !json_is_string(mode)) || !set_mode(json_string_value(mode), &w.mode))
        return serve_refuse(request, 400, "mode: expected hsm or dsm");
    return answer_recipes(request, recipe, recipes, &w);
}

enum MHD_Result serve_recipe_get(serve_request *request)
{
    const char *text = serve_url_get(&request->url, "recipe"), *at = serve_url_get(&request->url, "at");
    wanted w;
    set_usual(&w);
    int times = at ? cli_numbers(at, w.at, MOST_TIMES) : (int)w.count;
    if (!text) return serve_refuse(request, 400, "expected recipe=TEXT");
    if (times < 0) return serve_refuse(request, 400, "at: expected numbers with commas between");
    w.count = (size_t)times;
    if (!serve_number(request, "curves", 0, MOST_CURVES, &w.curves) ||
        !serve_number(request, "paths", 0, SERVE_PATHS, &w.paths) ||
        !serve_number(request, "seed", 0, 1L << 62, &w.seed))
        return serve_refuse(request, 400, "expected curves from 0 to %d, paths from 0 to %d, and a seed from 0 on",
                            MOST_CURVES, SERVE_PATHS);
    if (!set_mode(serve_url_get(&request->url, "mode"), &w.mode))
        return serve_refuse(request, 400, "mode: expected hsm or dsm");
    json_t *recipe = json_string(text);
    enum MHD_Result result = answer_recipes(request, recipe, NULL, &w);
    json_decref(recipe);
    return result;
}
