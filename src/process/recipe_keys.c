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
    {"name", "text", "", NULL, "name of the recipe", ALL | PSLD_KEYS_FORMULAS},
    {"gamma", "number", "0.01", NULL, PSLD_HELP_GAMMA, PSLD_KEYS_PHASE},
    {"nu", "number", "", NULL, PSLD_HELP_NU, PSLD_KEYS_PHASE},
    {"m_inv", "number", "", NULL, PSLD_HELP_M_INV, PSLD_KEYS_PHASE},
    {"n", "whole number", "4", NULL, PSLD_HELP_N, PSLD_KEYS_HOLD},
    {"D", "matrix", "", NULL, "k x k, symmetric: noise of each variable, position first",
     PSLD_KEYS_MATRICES | PSLD_KEYS_FORMULAS},
    {"Q", "matrix", "", NULL, "k x k, skew-symmetric: exchange between the variables",
     PSLD_KEYS_MATRICES | PSLD_KEYS_FORMULAS},
    {"drift", "matrix", "", NULL,
     "with noise instead of D and Q: dz = beta drift z dt + sqrt(beta) noise dw; with H: "
     "a formula for each variable, instead of Q",
     PSLD_KEYS_MATRICES | PSLD_KEYS_FORMULAS},
    {"noise", "matrix", "", NULL, "see drift", PSLD_KEYS_MATRICES},
    {"H", "formula", "", NULL, "makes it a recipe with formulas: the Hamiltonian, and D and Q may have formulas, too",
     PSLD_KEYS_FORMULAS},
    {"data", "list of names", "[x]", NULL, "with H: the variables that are data", PSLD_KEYS_FORMULAS},
    {"auxiliary", "list of names", "", NULL, "with H: the others; default m, or m1, m2, ... as D is large",
     PSLD_KEYS_FORMULAS},
    {"constants", "map", "", NULL, "with H: names with numbers, for formulas", PSLD_KEYS_FORMULAS},
    {"region", "list", "", NULL, "with H: [low, high], or a pair for each variable: where it is checked",
     PSLD_KEYS_FORMULAS},
    {"steps", "whole number", "400", NULL, "with H: Euler steps of a simulated path from t = 0 to 1",
     PSLD_KEYS_FORMULAS},
    {"mass", "number or list", "1", NULL, "of each auxiliary variable", PSLD_KEYS_MATRICES},
    {"beta", "number or list", "8", NULL, PSLD_HELP_BETA, ALL | PSLD_KEYS_FORMULAS},
    {"beta_min", "number", "", NULL, "beta at t = 0", ALL | PSLD_KEYS_FORMULAS},
    {"beta_max", "number", "", NULL, "beta at t = 1", ALL | PSLD_KEYS_FORMULAS},
    {"init", "number or list", "0.04", NULL, PSLD_HELP_INIT, AUX | PSLD_KEYS_FORMULAS},
    {"kappa", "number", "", NULL, "another name for init", AUX},
    {"stabiliser", "number", "1e-9", NULL, "added to the variances of the kernel; 0 for one variable", ALL},
    {"factor", "word", "lower", "lower|upper|natural", "of the covariance, which decides what eps means", AUX},
    {"learn", "list of names", "", NULL, "of training runs: what of D, Q, mass, beta is learned with the network", ALL},
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
