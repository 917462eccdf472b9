/* The tables of the library, as JSON. */
#include "serve.h"
#include "serve_jobs.h"

static json_t *text_or_null(const char *text)
{
    return text ? json_string(text) : json_null();
}

static json_t *presets(void)
{
    json_t *list = json_array();
    const psld_preset_info *p;
    for (int i = 0; (p = psld_preset_at(i)); i++) {
        json_t *parameters = json_array();
        for (const psld_preset_parameter *q = p->parameters; q->name; q++)
            json_array_append_new(parameters, json_pack("{s:s, s:o, s:s}", "name", q->name, "initial",
                                                        text_or_null(q->initial), "help", q->help));
        json_array_append_new(list, json_pack("{s:s, s:s, s:i, s:o}", "name", p->name, "summary", p->summary, "k", p->k,
                                              "parameters", parameters));
    }
    return list;
}

static json_t *samplers(void)
{
    json_t *list = json_array();
    const psld_sampler_info *s;
    for (int i = 0; (s = psld_sampler_at(i)); i++) {
        json_t *row = json_pack("{s:s, s:s, s:o, s:i, s:i, s:i, s:f}", "name", s->name, "summary", s->summary, "grid",
                                text_or_null(s->grid), "nfe", s->nfe, "order", s->order, "max_order", s->max_order,
                                "detail", s->detail);
        json_object_set_new(row, "adaptive", json_boolean(s->adaptive));
        json_object_set_new(row, "deterministic", json_boolean(s->deterministic));
        json_object_set_new(row, "reversible", json_boolean(s->reversible));
        json_object_set_new(row, "uses_eta", json_boolean(s->uses_eta));
        json_object_set_new(row, "uses_detail", json_boolean(s->uses_detail));
        json_object_set_new(row, "uses_tolerance", json_boolean(s->uses_tolerance));
        json_object_set_new(row, "consistency", json_boolean(s->consistency));
        json_array_append_new(list, row);
    }
    return list;
}

static json_t *grids(void)
{
    json_t *list = json_array();
    const psld_grid_info *g;
    for (int i = 0; (g = psld_grid_at(i)); i++)
        json_array_append_new(
            list, json_pack("{s:s, s:s, s:b}", "name", g->name, "summary", g->summary, "uses_rho", g->uses_rho));
    return list;
}

static json_t *qualities(void)
{
    json_t *list = json_array();
    const psld_quality_info *q;
    for (int i = 0; (q = psld_quality_at(i)); i++)
        json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:i}", "name", q->name, "summary", q->summary, "sampler",
                                              q->sampler, "nfe", q->nfe));
    return list;
}

static json_t *tasks(void)
{
    json_t *list = json_array();
    const psld_task_info *t;
    for (int i = 0; (t = psld_task_at(i)); i++)
        json_array_append_new(list,
                              json_pack("{s:s, s:s, s:b, s:b, s:b, s:b, s:b}", "name", t->name, "summary", t->summary,
                                        "uses_factor", t->uses_factor, "uses_blur", t->uses_blur, "uses_known",
                                        t->uses_known, "uses_matrix", t->uses_matrix, "needs_colour", t->needs_colour));
    return list;
}

static json_t *methods(void)
{
    json_t *list = json_array();
    const psld_restore_method_info *m;
    for (int i = 0; (m = psld_restore_method_at(i)); i++)
        json_array_append_new(list,
                              json_pack("{s:s, s:s, s:b, s:b}", "name", m->name, "summary", m->summary,
                                        "needs_gradient", m->needs_gradient, "uses_iterations", m->uses_iterations));
    return list;
}

static json_t *toys(void)
{
    json_t *list = json_array();
    const psld_toy_info *t;
    for (int i = 0; (t = psld_toy_at(i)); i++)
        json_array_append_new(
            list, json_pack("{s:s, s:s, s:i}", "name", t->name, "summary", t->summary, "classes", t->classes));
    return list;
}

static json_t *keys(void)
{
    json_t *list = json_array();
    psld_key key = PSLD_KEY_EMPTY;
    for (int i = 0; psld_training_key_info(i, &key); i++) {
        json_t *row = json_pack("{s:s, s:s, s:o, s:o, s:b, s:s}", "name", key.name, "type", key.type, "initial",
                                text_or_null(key.initial), "choices", text_or_null(key.choices), "may_change",
                                key.may_change, "help", key.help);
        json_object_set_new(row, "min", cli_json_number(key.min));
        json_object_set_new(row, "max", cli_json_number(key.max));
        json_array_append_new(list, row);
    }
    return list;
}

enum MHD_Result serve_about(serve_request *request)
{
    json_t *about = json_pack("{s:s, s:s, s:i, s:i}", "version", psld_version(), "folder",
                              serve_folder_name(serve.folder), "port", serve.names.port, "threads", psld_threads_get());
    json_object_set_new(about, "presets", presets());
    json_object_set_new(about, "samplers", samplers());
    json_object_set_new(about, "grids", grids());
    json_object_set_new(about, "qualities", qualities());
    json_object_set_new(about, "tasks", tasks());
    json_object_set_new(about, "methods", methods());
    json_object_set_new(about, "toys", toys());
    json_object_set_new(about, "keys", keys());
    json_object_set_new(about, "limits",
                        json_pack("{s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:i}", "body_bytes", SERVE_BODY, "upload_bytes",
                                  SERVE_UPLOAD, "upload_pixels", SERVE_UPLOAD_PIXELS, "uploads", SERVE_UPLOADS, "jobs",
                                  SERVE_JOBS, "samples", SERVE_SAMPLES, "points", SERVE_POINTS, "streams",
                                  SERVE_STREAMS));
    return serve_answer_json(request, 200, about);
}
