/* The keys of recipes: their names, in which kinds of recipes they may be used, and their meaning. */
#include "process/recipe_read.h"

#define PRESETS (PSLD_KEYS_VP | PSLD_KEYS_PHASE | PSLD_KEYS_THIRD | PSLD_KEYS_HOLD)
#define ALL     (PSLD_KEYS_MATRICES | PRESETS)
#define AUX     (ALL & ~(unsigned)PSLD_KEYS_VP) /* kinds that have auxiliary variables */

static const struct key_row {
    const char *name, *type, *initial, *choices, *help;
    unsigned where;
} table[] = {
    {"preset", "word", "", NULL, "a preset, which the other keys modify; psld recipe --list shows all", PRESETS},
    {"name", "text", "", NULL, "name of the recipe", ALL},
    {"gamma", "number", "0.01", NULL, PSLD_HELP_GAMMA, PSLD_KEYS_PHASE},
    {"nu", "number", "", NULL, PSLD_HELP_NU, PSLD_KEYS_PHASE},
    {"m_inv", "number", "", NULL, PSLD_HELP_M_INV, PSLD_KEYS_PHASE},
    {"n", "whole number", "4", NULL, PSLD_HELP_N, PSLD_KEYS_HOLD},
    {"D", "matrix", "", NULL, "k x k, symmetric: noise of each variable, position first", PSLD_KEYS_MATRICES},
    {"Q", "matrix", "", NULL, "k x k, skew-symmetric: exchange between the variables", PSLD_KEYS_MATRICES},
    {"drift", "matrix", "", NULL, "with noise instead of D and Q: dz = beta drift z dt + sqrt(beta) noise dw",
     PSLD_KEYS_MATRICES},
    {"noise", "matrix", "", NULL, "see drift", PSLD_KEYS_MATRICES},
    {"mass", "number or list", "1", NULL, "of each auxiliary variable", PSLD_KEYS_MATRICES},
    {"beta", "number or list", "8", NULL, PSLD_HELP_BETA, ALL},
    {"beta_min", "number", "", NULL, "beta at t = 0", ALL},
    {"beta_max", "number", "", NULL, "beta at t = 1", ALL},
    {"init", "number or list", "0.04", NULL, PSLD_HELP_INIT, AUX},
    {"kappa", "number", "", NULL, "another name for init", AUX},
    {"stabiliser", "number", "1e-9", NULL, "added to the variances of the kernel; 0 for one variable", ALL},
    {"factor", "word", "lower", "lower|upper|natural", "of the covariance, which decides what eps means", AUX},
    {"kernel", "word", "hsm", "hsm|dsm", "whose noise eps is: given x_0, or given all of z_0; see train.loss", AUX},
};
enum { ROWS = sizeof table / sizeof *table };

int psld_recipe_key(int index, psld_key *key)
{
    if (index < 0 || index >= ROWS) return 0;
    const struct key_row *row = &table[index];
    *key = (psld_key){
        .name = row->name, .type = row->type, .initial = row->initial, .choices = row->choices, .help = row->help};
    return 1;
}

psld_status psld_recipe_check_keys(const psld_node *map, unsigned where)
{
    const char *known[ROWS + 1];
    size_t count = 0;
    for (int i = 0; i < ROWS; i++)
        if (table[i].where & where) known[count++] = table[i].name;
    known[count] = NULL;
    return psld_node_check_keys(map, known);
}
