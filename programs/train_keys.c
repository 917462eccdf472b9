/* psld train --keys: columns with two spaces or more between them, which tools/make-keys turns into the tables of docs/. */
#include <stdio.h>
#include <string.h>

#include "names.h"
#include "train.h"

static int keys_print_json(void)
{
    json_t *object = json_object(), *list = json_array();
    psld_key key = PSLD_KEY_EMPTY;
    for (int i = 0; psld_training_key_info(i, &key); i++) {
        json_t *row = json_object();
        json_object_set_new(row, "name", json_string(key.name));
        json_object_set_new(row, "type", json_string(key.type));
        json_object_set_new(row, "default", *key.initial ? json_string(key.initial) : json_null());
        if (key.choices) json_object_set_new(row, "choices", json_string(key.choices));
        if (key.min != key.max) {
            json_object_set_new(row, "min", cli_json_number(key.min));
            json_object_set_new(row, "max", cli_json_number(key.max));
        }
        json_object_set_new(row, "may_change", json_boolean(key.may_change));
        json_object_set_new(row, "help", json_string(key.help));
        json_array_append_new(list, row);
    }
    json_object_set_new(object, "keys", list);
    return cli_json_print(object);
}

int train_print_keys(int json)
{
    psld_key key = PSLD_KEY_EMPTY;
    if (json) return keys_print_json();
    printf("%-26s  %-21s  %-12s  %s\n", "KEY", "TYPE", "DEFAULT", "MEANING (* may change when a run goes on)");
    for (int i = 0; psld_training_key_info(i, &key); i++) {
        char name[80];
        snprintf(name, sizeof name, "%s%s", key.name, key.may_change ? " *" : "");
        printf("%-26s  %-21s  %-12s  %s%s%s\n", name, key.type, *key.initial ? key.initial : "-",
               key.choices ? key.choices : "", key.choices ? ": " : "", key.help);
    }
    printf("\nWith DATA alone, a network and settings are chosen for it instead of the defaults; psld train -v shows "
           "them.\n");
    return EXIT_DONE;
}

static void key_print_name(void *user, const char *name, const char *path)
{
    (void)user, (void)path;
    if (strncmp(name, "sweeps/", 7) != 0) puts(name);
}

/* Names of keys with '=', or, once the word has that, what the key may be; toys and configurations. */
void train_complete(const char *word)
{
    psld_key key = PSLD_KEY_EMPTY;
    const char *equals = strchr(word, '=');
    for (int i = 0; psld_training_key_info(i, &key); i++) {
        if (!equals) printf("%s=\n", key.name);
        if (!equals || strlen(key.name) != (size_t)(equals - word) || strncmp(key.name, word, strlen(key.name)) != 0)
            continue;
        for (const char *c = key.choices; c; c = strchr(c, '|') ? strchr(c, '|') + 1 : NULL)
            printf("%s=%.*s\n", key.name, (int)strcspn(c, "|"), c);
        if (strcmp(key.name, "process") != 0) continue;
        for (int p = 0; names_preset(p); p++) printf("process=%s\n", names_preset(p));
    }
    for (int i = 0; !equals && names_toy(i); i++) printf("toy:%s\n", names_toy(i));
    if (!equals) cli_each_config(key_print_name, NULL);
}
