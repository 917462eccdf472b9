/* The parts of a sweep: sweep_read.c reads the file, sweep.c has the cells, sweep_run.c runs them. */
#ifndef PSLD_EVAL_SWEEP_H
#define PSLD_EVAL_SWEEP_H

#include "eval/set.h"
#include "io/yaml/yaml.h"

enum { PSLD_SWEEP_LIST = 64 }; /* entries of a list of the file */

typedef struct psld_sweep_texts {
    size_t count;
    const char *text[PSLD_SWEEP_LIST]; /* owned by the YAML */
} psld_sweep_texts;

typedef struct psld_sweep_numbers {
    size_t count;
    double value[PSLD_SWEEP_LIST];
} psld_sweep_numbers;

struct psld_sweep {
    psld_yaml *yaml;
    char *path;
    char *device; /* NULL: the CPU */
    const char *name, *data, *weights, *metric_names, *quantize, *fit, *inpaint_images, *hide, *masks_path, *method,
        *label;
    psld_sweep_texts labels, models, processes, samplers, grids;
    psld_sweep_numbers nfe, tolerances, seeds, cfg, cfg_range;
    int64_t number, size;
    int resample;
    unsigned metrics;
    psld_sweep_cell *cells;
    psld_comparison comparison; /* of the last cell that was run */
    size_t *model_of;           /* [cell_count] */
    size_t cell_count;
    /* identities of what the names stand for; 0: not given */
    uint64_t *fingerprint; /* [cell_count]: model with its recipe */
    uint64_t data_identity, weights_identity, known_identity, masks_identity;
    /* made when the first cell runs */
    psld_features *features;
    psld_set *real, *known, *masks;
    /* the model of the last cell: the next cell often has the same */
    psld_model *model;
    size_t model_index;
    const char *model_process;
    uint64_t model_fingerprint;
};

/* Reads what the file lists. */
psld_status psld_sweep_read(const psld_node *root, psld_sweep *s);

/* Fails if there is no cell of this number. */
psld_status psld_sweep_check(const psld_sweep *sweep, size_t index);
/* Opens the model of a cell, unless it is open already. Each exact model has its own exact samples: the reference of a
 * cell must not depend on earlier cells. */
psld_status psld_sweep_open_model(psld_sweep *s, size_t index);
psld_status psld_sweep_sampling(const psld_sweep_cell *cell, psld_sample_options *sampling);
/* The labels of a cell; *list, which belongs to the caller, is NULL if they are drawn. */
psld_status psld_sweep_labels(const psld_sweep *s, const psld_sweep_cell *cell, psld_labels *labels, psld_array **list);
int psld_sweep_has_labels(const psld_sweep *s);

#endif
