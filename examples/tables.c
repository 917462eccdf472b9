/* What the library has: every sampler, time grid, quality, preset, task, method, metric, filter and toy set with a line on
 * it. With a name as argument: what that is. */
#include <psld_eval.h>
#include <stdio.h>

#define PRINT_TABLE(title, info, at)                                                         \
    do {                                                                                     \
        const info *row;                                                                     \
        printf("%s\n", title);                                                               \
        for (int i = 0; (row = at(i)); i++) printf("  %-18s %s\n", row->name, row->summary); \
    } while (0)

static void print_tables(void)
{
    PRINT_TABLE("samplers", psld_sampler_info, psld_sampler_at);
    PRINT_TABLE("time grids", psld_grid_info, psld_grid_at);
    PRINT_TABLE("qualities", psld_quality_info, psld_quality_at);
    PRINT_TABLE("presets", psld_preset_info, psld_preset_at);
    PRINT_TABLE("tasks of restoration", psld_task_info, psld_task_at);
    PRINT_TABLE("methods of restoration", psld_restore_method_info, psld_restore_method_at);
    PRINT_TABLE("metrics", psld_metric_info, psld_metric_at);
    PRINT_TABLE("filters", psld_resample_info, psld_resample_at);
    PRINT_TABLE("toy sets", psld_toy_info, psld_toy_at);
}

static void describe_preset(const psld_preset_info *preset)
{
    printf("preset of %d variable%s\n", preset->k, preset->k == 1 ? "" : "s");
    for (const psld_preset_parameter *p = preset->parameters; p->name; p++)
        printf("  %-6s %-10s %s\n", p->name, p->initial ? p->initial : "-", p->help);
}

static int describe(const char *name)
{
    const psld_sampler_info *sampler = psld_sampler_find(name);
    const psld_grid_info *grid = psld_grid_find(name);
    const psld_quality_info *quality = psld_quality_find(name);
    const psld_preset_info *preset = psld_preset_find(name);
    const psld_restore_method_info *method = psld_restore_method_find(name);
    const psld_metric_info *metric = psld_metric_find(name);
    const psld_toy_info *toy = psld_toy_find(name);
    if (sampler)
        printf("sampler: %s, %d evaluations by itself\n", sampler->adaptive ? "adaptive" : "fixed steps", sampler->nfe);
    if (grid) printf("time grid in %s\n", grid->in_sigma ? "effective noise" : "t");
    if (quality) printf("quality: %s with %d evaluations\n", quality->sampler, quality->nfe);
    if (preset) describe_preset(preset);
    if (psld_task_find(name)) printf("task of restoration\n");
    if (method) printf("method of restoration%s\n", method->needs_gradient ? ", differentiates the score" : "");
    if (metric) printf("metric of %s\n", metric->needs_pair ? "two sets" : "one set");
    if (psld_resample_find(name)) printf("filter for images\n");
    if (toy) printf("toy set of %d classes\n", toy->classes);
    return sampler || grid || quality || preset || psld_task_find(name) || method || metric ||
           psld_resample_find(name) || toy;
}

int main(int argc, char **argv)
{
    if (argc == 1) return print_tables(), 0;
    if (describe(argv[1])) return 0;
    fprintf(stderr, "nothing is named \"%s\"\n", argv[1]);
    return 1;
}
