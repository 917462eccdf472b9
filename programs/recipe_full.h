/* Recipes with formulas in psld recipe. */
#ifndef PSLD_PROGRAMS_RECIPE_FULL_H
#define PSLD_PROGRAMS_RECIPE_FULL_H

#include "cli.h"

typedef struct recipe_full {
    int json, exchange;
    int points;                /* of the exchange, for each variable; 0: chosen */
    const char *exchange_path; /* .npy; NULL: nowhere */
    const char *plot;          /* NULL: none */
} recipe_full;

/* Checks a process and prints what was found. */
psld_status recipe_full_show(const psld_process *process, const recipe_full *r, int *exit_code);

#endif
