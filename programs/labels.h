/* Options for class-conditional models: the classes of samples, and the strength of guidance. */
#ifndef PSLD_PROGRAMS_LABELS_H
#define PSLD_PROGRAMS_LABELS_H

#include "cli.h"

typedef struct label_request {
    const char *label;       /* "NAME|NUMBER|all|none", or several separated by commas */
    const char *file;        /* .npy with one number per sample */
    const char *cfg, *range; /* numbers as text */
} label_request;

/* Rows of tables of options. clang-format off: it would break every row that is longer than a line. */
/* clang-format off */
#define LABEL_CFG_OPTIONS(l) \
    {"cfg", 0, CLI_TEXT, "W", "classifier-free guidance: 1 follows the label, more exaggerates it (default: the model's)", \
     &(l).cfg, NULL}, \
    {"cfg-range", 0, CLI_TEXT, "LO,HI", "guide only while the effective noise is in this range", &(l).range, NULL}
#define LABEL_OPTIONS(l) \
    {"label", 0, CLI_TEXT, "L|all", "classes by name or number, in turn: a; a,b,c; all; none: without label", \
     &(l).label, NULL}, \
    {"labels", 0, CLI_FILE, "L.npy", "the class of each sample: whole numbers [n], -1 for none", &(l).file, NULL}, \
    LABEL_CFG_OPTIONS(l)
/* clang-format on */

/* The choice of labels for a model. */
typedef struct label_choice {
    psld_labels labels;
    int32_t *numbers; /* labels.label, owned */
    int is_set;       /* 0: nothing was asked for; the library chooses labels */
} label_choice;

/* Checks the options before a model is opened. Returns EXIT_DONE if they are right. */
int labels_check(const cli_command *command, const label_request *request);
/* `origin` names the model in messages. Free the choice after failure, too. */
psld_status labels_choose(const label_request *request, const psld_model *model, const char *origin,
                          label_choice *choice);
void labels_free(label_choice *choice);
/* The names of the classes that are drawn in turn, for a report: "cat, dog". "" if labels are drawn or from a file. */
const char *labels_text(const label_request *request, const label_choice *choice, char *text, size_t size);

#endif
