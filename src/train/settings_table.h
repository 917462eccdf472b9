/* The table of keys, for the files settings*.c. */
#ifndef PSLD_TRAIN_SETTINGS_TABLE_H
#define PSLD_TRAIN_SETTINGS_TABLE_H

#include "train/settings.h"

typedef enum setting_kind {
    SETTING_WHOLE,
    SETTING_NUMBER,
    SETTING_NUMBERS,
    SETTING_FLAG,
    SETTING_WORD,
    SETTING_TEXT,
    SETTING_NAMES
} setting_kind;

typedef struct setting_row {
    const char *section, *name;
    setting_kind kind;
    size_t offset;       /* of the field in psld_settings */
    double min, max;     /* of numbers */
    const char *initial; /* the default, as YAML */
    const char *words;   /* SETTING_WORD: the choices, separated by '|'; the field gets the position.
                            SETTING_NUMBER: a word that is allowed, too, and stands for -1 */
    int may_change;      /* when a run is continued */
    const char *help;
} setting_row;

/* Row `index` of the table; NULL past the last. */
const setting_row *psld_settings_row(int index);
/* The name of the key with its section: "train.lr". */
enum { SETTING_NAME_SIZE = 64 };
void psld_settings_row_name(const setting_row *row, char name[SETTING_NAME_SIZE]);

/* The node of a key such as "train.lr"; NULL if the document does not have it. */
const psld_node *psld_settings_node(const psld_yaml *yaml, const char *key);

#endif
