/* Results of psld eval: as text and as JSON. */
#include <stdio.h>
#include <string.h>

#include "eval.h"

static int was_resized(const psld_set *set)
{
    return set && psld_set_fitted(set);
}

static void report_resize_of(const char *name, const psld_data_options *images)
{
    if (images->image_size > 0)
        cli_complain("%s: images were resized to %d x %d%s, %s", name, images->image_size, images->image_size,
                     images->channels == 1 ? " in grey" : "",
                     images->stretch ? "stretched" : "from the largest square in the middle");
    else
        cli_complain("%s: colour images were converted to grey, like most of the set", name);
}

/* Every resizing is reported. Whether there was any is known once the sets have been read. */
void eval_report_resize(const eval_sides *s)
{
    if (was_resized(s->first)) report_resize_of(s->name[0], &s->images);
    if (was_resized(s->second)) report_resize_of(s->name[1], &s->images);
}

void eval_add_resize(json_t *object, const eval_sides *s)
{
    if (s->images.image_size <= 0 || (!was_resized(s->first) && !was_resized(s->second))) return;
    json_object_set_new(object, "brought_to", json_integer(s->images.image_size));
    json_object_set_new(object, "fit", json_string(s->images.stretch ? "stretch" : "crop"));
    json_object_set_new(object, "resample", json_string(psld_resample_at(s->images.resample)->name));
}

void eval_add_number(json_t *object, const char *key, double value)
{
    json_object_set_new(object, key, cli_json_number(value));
}

const char *eval_feature_kind(const eval_sides *s)
{
    return s->features ? psld_features_name(s->features) : "as given";
}

int eval_is_fid(const eval_sides *s)
{
    return !s->features || psld_features_is_fid(s->features);
}

/* The distance is not FID for points and for features of an unknown network. Published statistics and features of the
 * FID network have this width. */
static const char *frechet_name(const eval_sides *s, size_t dim)
{
    enum { FID_WIDTH = 2048 };
    if (s->features) return eval_is_fid(s) ? "frechet distance (fid)" : "frechet distance (NOT fid)";
    return dim == FID_WIDTH ? "frechet distance (fid)" : "frechet distance";
}

void eval_add_metrics(json_t *object, unsigned metrics, int is_fid, const psld_comparison *c)
{
    if ((metrics & PSLD_FRECHET) && is_fid) eval_add_number(object, "fid", c->frechet);
    if (metrics & PSLD_FRECHET) eval_add_number(object, "frechet_distance", c->frechet);
    if (metrics & PSLD_INCEPTION_SCORE) {
        eval_add_number(object, "is", c->score);
        eval_add_number(object, "is_std", c->score_deviation);
        eval_add_number(object, "is_in_order", c->score_in_order);
        eval_add_number(object, "is_in_order_std", c->score_in_order_deviation);
    }
    if (metrics & PSLD_KID)
        eval_add_number(object, "kid", c->kid), eval_add_number(object, "kid_std", c->kid_deviation);
    if (metrics & PSLD_PRECISION_RECALL)
        eval_add_number(object, "precision", c->precision), eval_add_number(object, "recall", c->recall);
    if (metrics & PSLD_SLICED) eval_add_number(object, "swd", c->sliced);
}

json_t *eval_comparison_json(const eval_request *r, const eval_sides *s, const psld_comparison *c, double seconds)
{
    unsigned metrics = r->compare.metrics;
    json_t *object = json_object();
    json_object_set_new(object, "a", json_string(s->name[0]));
    if (s->name[1]) json_object_set_new(object, "b", json_string(s->name[1]));
    json_object_set_new(object, "n_a", json_integer((json_int_t)c->count[0]));
    if (s->name[1]) json_object_set_new(object, "n_b", json_integer((json_int_t)c->count[1]));
    json_object_set_new(object, "features", json_string(eval_feature_kind(s)));
    json_object_set_new(object, "dim", json_integer((json_int_t)c->dim));
    if (s->model) {
        json_object_set_new(object, "sampler", json_string(s->sampling.sampler));
        json_object_set_new(object, "nfe", json_integer((json_int_t)psld_set_nfe(s->first)));
    }
    eval_add_metrics(object, metrics, eval_is_fid(s), c);
    eval_add_resize(object, s);
    eval_add_number(object, "seconds", seconds);
    return object;
}

void eval_print_comparison(const eval_request *r, const eval_sides *s, const psld_comparison *c, double seconds)
{
    unsigned metrics = r->compare.metrics;
    char time[CLI_DURATION];
    printf("%s: %llu", s->name[0], (unsigned long long)c->count[0]);
    if (s->model)
        printf(" samples by %s, %llu evaluations each", s->sampling.sampler,
               (unsigned long long)psld_set_nfe(s->first));
    if (s->name[1] && c->count[1])
        printf("; %s: %llu", s->name[1], (unsigned long long)c->count[1]);
    else if (s->name[1])
        printf("; %s: statistics", s->name[1]);
    printf("; features: %s, %zu numbers; %s\n", eval_feature_kind(s), c->dim, cli_duration(seconds, time));
    if (metrics & PSLD_FRECHET) printf("%-28s %.6g\n", frechet_name(s, c->dim), c->frechet);
    if (metrics & PSLD_INCEPTION_SCORE) {
        printf("%-28s %.6g +- %.2g\n", "inception score, shuffled", c->score, c->score_deviation);
        printf("%-28s %.6g +- %.2g\n", "inception score, in order", c->score_in_order, c->score_in_order_deviation);
    }
    if (metrics & PSLD_KID) printf("%-28s %.6g +- %.2g\n", "kernel distance (kid)", c->kid, c->kid_deviation);
    if (metrics & PSLD_PRECISION_RECALL)
        printf("%-28s %.4f\n%-28s %.4f\n", "precision", c->precision, "recall", c->recall);
    if (metrics & PSLD_SLICED) printf("%-28s %.6g\n", "sliced wasserstein distance", c->sliced);
}

int eval_print_nll(const eval_request *r, const eval_sides *s, const psld_nll *nll, double seconds)
{
    char time[CLI_DURATION];
    if (!r->sampling.json) {
        printf("%s on %s: %llu samples of %zu dimensions, %s divergence, tolerance %g, from t = %g; %llu evaluations "
               "each; %s\n",
               s->name[0], s->name[1], (unsigned long long)nll->count, nll->dim,
               nll->is_exact ? "exact" : "Hutchinson's", r->likelihood.tolerance, r->likelihood.eps,
               (unsigned long long)nll->nfe, cli_duration(seconds, time));
        printf("%-28s %.5f +- %.5f bits per dimension (%.6g nats per sample)\n",
               nll->is_bound ? "negative log-likelihood <=" : "negative log-likelihood", nll->bits, nll->error,
               nll->nats);
        return EXIT_DONE;
    }
    json_t *object = json_object();
    json_object_set_new(object, "model", json_string(s->name[0]));
    json_object_set_new(object, "data", json_string(s->name[1]));
    json_object_set_new(object, "n", json_integer((json_int_t)nll->count));
    json_object_set_new(object, "dim", json_integer((json_int_t)nll->dim));
    eval_add_number(object, "bits_per_dim", nll->bits);
    eval_add_number(object, "bits_per_dim_error", nll->error);
    eval_add_number(object, "nll", nll->nats);
    json_object_set_new(object, "bound", json_boolean(nll->is_bound));
    json_object_set_new(object, "divergence", json_string(nll->is_exact ? "exact" : "hutchinson"));
    eval_add_number(object, "tolerance", r->likelihood.tolerance);
    eval_add_number(object, "eps", r->likelihood.eps);
    json_object_set_new(object, "nfe", json_integer((json_int_t)nll->nfe));
    eval_add_resize(object, s);
    eval_add_number(object, "seconds", seconds);
    return cli_json_print(object);
}
