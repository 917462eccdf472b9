/* The parts of a design: design.c has the order of trials, design_read.c what the options mean, design_measure.c what a
 * recipe costs. */
#ifndef PSLD_EVAL_DESIGN_H
#define PSLD_EVAL_DESIGN_H

#include "eval/evolution.h"
#include "process/learned.h"
#include "psld_eval.h"
#include "sample/sources/mixture.h"

enum { PSLD_DESIGN_CRITERIA = 3 }; /* error, distance, factors: in this order */

typedef struct psld_design_start {
    psld_recipe *recipe;
    double cost;
} psld_design_start;

struct psld_design {
    psld_design_options options; /* complete; texts and lists belong to the caller and are no longer used */
    psld_sample_options sampling;
    char sampler[256];
    unsigned learn;
    double weight[PSLD_DESIGN_CRITERIA]; /* per criterion; 0: not used */
    double limit[PSLD_DESIGN_CRITERIA];  /* infinite: none */
    psld_mixture *mixture;
    uint64_t fingerprint;      /* that of the mixture */
    psld_design_start *starts; /* [start_count]; sorted by cost once all costs are known */
    size_t start_count;
    double *fresh[2]; /* samples of the data for trials and for the final stage; NULL: not drawn yet */
    /* the search */
    uint64_t number; /* of the trial that is under way, or was reported last */
    int asked;
    psld_recipe *proposed, *best;
    psld_learned learned;
    psld_evolution *evolution;
    double best_cost;
};

/* ---- design_read.c ----------------------------------------------------------------------------------------------- */

psld_status psld_design_read(const psld_design_options *options, psld_design *design);
psld_status psld_design_open_mixture(const char *path, psld_design *design);
psld_status psld_design_open_starts(psld_design *design);

/* ---- design_measure.c -------------------------------------------------------------------------------------------- */

/* `final`: with more samples and other random numbers. If a recipe cannot be sampled, its costs are infinite; only lack
 * of memory and cancelling are failures. */
psld_status psld_design_measure_recipe(psld_design *design, const psld_recipe *recipe, int final,
                                       psld_progress_fn progress, void *user, psld_design_costs *costs);

/* The total of the criteria, by the weights and limits of the design. */
void psld_design_add_up(const psld_design *design, psld_design_costs *costs);

#endif
