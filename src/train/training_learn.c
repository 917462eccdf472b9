/* Runs with the loss of the bound (train.loss: elbo), and runs whose recipe is learned by it (process.learn), from the same
 * pass as the network with that loss, beside it with the loss of eps. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "data/data.h"
#include "model/files/process_read.h"
#include "process/process.h"
#include "process/recipe_read.h"
#include "train/training.h"

#define LEARN_KEY "process.learn"

/* ---- Configuration ----------------------------------------------------------------------------------------------- */

static const psld_node *process_node(const psld_yaml *yaml)
{
    return psld_node_get(psld_yaml_root(yaml), "process");
}

/* Whether it is the loss, or something is learned by it. */
static int has_bound(const psld_yaml *yaml)
{
    if (psld_node_get(process_node(yaml), "learn")) return 1;
    const psld_node *loss = psld_node_get(psld_node_get(psld_yaml_root(yaml), "train"), "loss");
    const char *text = "";
    return loss && psld_node_kind_of(loss) == PSLD_NODE_SCALAR && psld_node_text(loss, &text) == PSLD_OK &&
           psld_text_same(text, "elbo");
}

int psld_training_is_learn_key(const char *assignment)
{
    return strncmp(assignment, LEARN_KEY "=", sizeof LEARN_KEY) == 0;
}

psld_status psld_training_set_learn(psld_yaml *yaml, const char *assignment)
{
    const psld_node *process = process_node(yaml);
    if (!process) return psld_fail(PSLD_BAD_INPUT, LEARN_KEY ": needs process, the recipe to begin with");
    if (psld_node_kind_of(process) == PSLD_NODE_SCALAR) PSLD_TRY(psld_process_spread(yaml));
    return psld_yaml_override(yaml, assignment);
}

/* A list of words or one line of them, as the text that psld_learn_parse reads. */
static psld_status learn_text(const psld_node *node, char *text, size_t room)
{
    const char *word;
    size_t used = 0;
    text[0] = 0;
    if (psld_node_kind_of(node) == PSLD_NODE_MAP) return psld_node_fail(node, "expected a list of D, Q, mass, beta");
    for (size_t i = 0, n = psld_node_size(node); i < n || (i == 0 && psld_node_kind_of(node) == PSLD_NODE_SCALAR);
         i++) {
        PSLD_TRY(psld_node_text(psld_node_kind_of(node) == PSLD_NODE_SCALAR ? node : psld_node_at(node, i), &word));
        used += (size_t)snprintf(text + used, room - used, "%s%s", i ? ", " : "", word);
        if (used >= room) return psld_node_fail(node, "expected a list of D, Q, mass, beta");
    }
    return PSLD_OK;
}

static psld_status read_learn(const psld_yaml *yaml, unsigned *what)
{
    const psld_node *process = process_node(yaml), *node = NULL;
    char text[256];
    *what = 0;
    if (process && psld_node_kind_of(process) == PSLD_NODE_MAP) node = psld_node_get(process, "learn");
    if (!node) return PSLD_OK;
    PSLD_TRY(learn_text(node, text, sizeof text));
    if (psld_learn_parse(LEARN_KEY, text, what) == PSLD_OK) return PSLD_OK;
    return psld_node_fail(node, "%s", psld_error_text() + sizeof LEARN_KEY + 1);
}

static psld_status write_learn(unsigned what, psld_yaml *yaml)
{
    static const char *const names[] = {"D", "Q", "mass", "beta"};
    char assignment[64] = LEARN_KEY "=[";
    for (int i = 0, any = 0; what && i < 4; i++)
        if (what & (1u << i)) {
            strcat(assignment, any++ ? ", " : "");
            strcat(assignment, names[i]);
        }
    strcat(assignment, "]");
    return what ? psld_yaml_override(yaml, assignment) : PSLD_OK;
}

/* Of images: the bound can tell two values of a pixel apart at any less noise, and a network cannot. */
static psld_status set_first_time(const psld_recipe *recipe, double cell, psld_yaml *yaml)
{
    char text[32];
    double t;
    if (!(cell > 0) || psld_recipe_time(recipe, cell / 4, &t) != PSLD_OK || !(t > 1e-12 && t < 0.5)) return PSLD_OK;
    psld_text_print(text, sizeof text, "%.3g", t);
    return psld_settings_default(yaml, "train.eps", text);
}

/* The bound is exact without the stabiliser alone, so there is none unless somebody wants one. */
static psld_status write_recipe(double cell, psld_yaml *yaml)
{
    const psld_node *process = process_node(yaml);
    psld_recipe *recipe;
    unsigned what;
    int stabilised = psld_node_get(process, "stabiliser") != NULL;
    PSLD_TRY(read_learn(yaml, &what));
    PSLD_TRY(psld_recipe_read(process, &recipe));
    psld_recipe_spec spec = recipe->spec;
    psld_status status = set_first_time(recipe, cell, yaml);
    psld_recipe_free(recipe);
    if (!stabilised) spec.stabiliser = 0;
    if (status == PSLD_OK) status = psld_process_set(yaml, &spec);
    return status == PSLD_OK ? write_learn(what, yaml) : status;
}

double psld_training_cell(const psld_training *t)
{
    return psld_data_is_image(t->data) ? 2.0 / 255 : 0;
}

psld_status psld_training_expand_learned(psld_training *t)
{
    const psld_node *process = process_node(t->yaml);
    if (!has_bound(t->yaml) || !process || psld_process_is_full(process)) return PSLD_OK;
    if (psld_node_kind_of(process) == PSLD_NODE_SCALAR) PSLD_TRY(psld_process_spread(t->yaml));
    if (!psld_process_is_full(process_node(t->yaml))) PSLD_TRY(write_recipe(psld_training_cell(t), t->yaml));
    const psld_node *loss = psld_node_get(psld_node_get(psld_yaml_root(t->yaml), "train"), "loss");
    const char *text = "";
    if (loss && psld_node_kind_of(loss) == PSLD_NODE_SCALAR) PSLD_TRY(psld_node_text(loss, &text));
    return psld_text_same(text, "elbo") ? psld_settings_default(t->yaml, "train.times", "importance") : PSLD_OK;
}

/* ---- What makes sense -------------------------------------------------------------------------------------------- */

static psld_status check_kernel(const psld_recipe_spec *spec, const char *with)
{
    if (spec->mode == PSLD_DSM && spec->k > 1)
        return psld_fail(PSLD_BAD_INPUT, "process.kernel: expected hsm with %s, found dsm", with);
    if (spec->stabiliser > 0)
        return psld_fail(PSLD_BAD_INPUT, "process.stabiliser: expected 0 with %s, whose kernel is exact, found %g",
                         with, spec->stabiliser);
    return PSLD_OK;
}

static psld_status check_learn(const psld_training *t)
{
    const psld_settings *s = &t->settings;
    if (s->train.loss != PSLD_LOSS_ELBO && s->train.loss != PSLD_LOSS_HSM)
        return psld_fail(PSLD_BAD_INPUT, LEARN_KEY ": needs train.loss = elbo or hsm");
    if (!t->model->recipe) return psld_fail(PSLD_BAD_INPUT, LEARN_KEY ": a recipe with formulas has nothing to learn");
    if (s->train.l1 || s->train.sum)
        return psld_fail(PSLD_BAD_INPUT, LEARN_KEY ": expected train.norm = l2 and train.reduce = mean");
    if (psld_model_predicts_data(t->model))
        return psld_fail(PSLD_BAD_INPUT, LEARN_KEY ": needs a network of eps, which sees the recipe's states; expected "
                                                   "model.predicts = noise, found data");
    return check_kernel(&t->model->recipe->spec, LEARN_KEY);
}

psld_status psld_training_check_learn(const psld_training *t)
{
    const psld_settings *s = &t->settings;
    unsigned what;
    PSLD_TRY(read_learn(t->yaml, &what));
    if (what) PSLD_TRY(check_learn(t));
    if (s->train.loss != PSLD_LOSS_ELBO || !t->model->recipe) return PSLD_OK;
    if (s->train.l1 || s->train.sum || s->train.weighting != PSLD_WEIGH_EPS)
        return psld_fail(PSLD_BAD_INPUT,
                         "train.norm, train.reduce, train.weighting: expected their defaults with train.loss = elbo, "
                         "which is a bound in bits per dimension");
    return check_kernel(&t->model->recipe->spec, "train.loss = elbo");
}

/* ---- The run ----------------------------------------------------------------------------------------------------- */

psld_status psld_training_begin_learn(psld_training *t)
{
    unsigned what;
    PSLD_TRY(read_learn(t->yaml, &what));
    if (!what) return PSLD_OK;
    return psld_learner_create(t->model->recipe, what, (uint64_t)t->settings.train.batch, &t->learner);
}

const psld_perturbation *psld_training_bound(const psld_training *t)
{
    return t->objective == &psld_objective_elbo ? &t->perturbation : &t->bound;
}

psld_status psld_training_tabulate(psld_training *t)
{
    psld_perturbation *p = &t->perturbation;
    if (t->learner && t->objective != &psld_objective_elbo) PSLD_TRY(psld_perturbation_tabulate_trace(&t->bound));
    if (p->by_trace) PSLD_TRY(psld_perturbation_tabulate_trace(p));
    return p->by_noise > 0 || t->objective->aim ? psld_perturbation_tabulate(p) : PSLD_OK;
}

psld_status psld_training_learn(psld_training *t)
{
    const psld_settings *s = &t->settings;
    double norm;
    if (!t->learner) return PSLD_OK;
    long step = psld_trainer_steps(t->trainer);
    psld_learner_step how = {.rate = psld_trainer_rate_at(t->trainer, step - 1) / s->train.lr * s->train.learn_lr,
                             .beta1 = s->train.beta1,
                             .beta2 = s->train.beta2,
                             .epsilon = s->train.adam_eps,
                             .clip = s->train.clip,
                             .step = step};
    psld_status status = psld_learner_update(t->learner, psld_training_bound(t), &how, &norm);
    if (status == PSLD_OK) status = psld_training_tabulate(t);
    return status == PSLD_OK ? PSLD_OK : psld_fail_in(status, "step %ld", step);
}

psld_status psld_training_restore_learn(psld_training *t)
{
    size_t count;
    if (!t->learner) return PSLD_OK;
    double *state = psld_learner_state(t->learner, &count);
    t->ranks->broadcast(state, count * sizeof *state);
    PSLD_TRY(psld_learner_restored(t->learner));
    PSLD_TRY(psld_training_tabulate(t));
    return psld_training_name_recipe(t);
}

/* A model has the recipe as it is now, and nothing more to learn. */
psld_status psld_training_name_recipe(psld_training *t)
{
    psld_yaml *yaml = NULL;
    char *text = NULL;
    if (!t->learner) return PSLD_OK;
    PSLD_TRY(psld_yaml_parse(t->config, strlen(t->config), "config.yaml", &yaml));
    psld_status status = psld_process_set(yaml, &t->model->recipe->spec);
    if (status == PSLD_OK) status = psld_yaml_text(yaml, &text);
    psld_yaml_free(yaml);
    if (status != PSLD_OK) return status;
    psld_release(t->model->config);
    t->model->config = text;
    return PSLD_OK;
}
