/* Recipes with formulas in psld recipe. */
#ifndef PSLD_PROGRAMS_RECIPE_FULL_H
#define PSLD_PROGRAMS_RECIPE_FULL_H

#include "cli.h"

typedef struct recipe_full {
    int json, exchange;
    int points;                /* points per variable for the exchange; 0: default */
    const char *exchange_path; /* .npy; NULL: not written */
    const char *plot;          /* NULL: none */
} recipe_full;

/* Checks a process and prints the results. */
psld_status recipe_full_show(const psld_process *process, const recipe_full *r, int *exit_code);

#endif
