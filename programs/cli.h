/* Shared by all commands: options, help, man pages, completion, messages, progress. A command is a row in main.c;
 * parsing, --help, the man page and the completion are all made from its table of options. */
#ifndef PSLD_PROGRAMS_CLI_H
#define PSLD_PROGRAMS_CLI_H

#include <jansson.h>
#include <signal.h>
#include <stddef.h>

#include "psld.h"
#include "psld_data.h"
#include "psld_eval.h"
#include "psld_plot.h"
#include "psld_ranks.h"
#include "psld_train.h"

enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_USAGE = 2 };

typedef struct cli_command {
    const char *name, *summary;
    const char *usage;       /* what follows "psld NAME " */
    const char *description; /* paragraphs, separated by empty lines */
    const char *examples;    /* lines "command  # what it does" */
    int (*run)(const struct cli_command *command, int argc, char **argv);
    void (*complete)(const char *word); /* prints words other than options, for the completion; NULL: file names */
} cli_command;

extern const cli_command command_bench, command_configs, command_convert, command_data, command_demo, command_design,
    command_devices, command_encode, command_eval, command_guide, command_info, command_inpaint, command_interpolate,
    command_recipe, command_restore, command_sample, command_score, command_serve, command_stop, command_sweep,
    command_train, command_tune;

typedef enum cli_kind {
    CLI_FLAG,   /* int, set to 1 */
    CLI_CLEAR,  /* int, set to 0 */
    CLI_TEXT,   /* const char * */
    CLI_FILE,   /* const char *, completed as a file name */
    CLI_COUNT,  /* long, at least 1 */
    CLI_SEED,   /* uint64_t */
    CLI_NUMBER, /* double, above 0 */
    CLI_TIME,   /* double, seconds: "90s", "30m", "2h", "1d" */
} cli_kind;

typedef struct cli_option {
    const char *name; /* NULL ends a table */
    char letter;      /* 0: none */
    cli_kind kind;
    const char *argument; /* as shown in help */
    const char *help;
    void *value;
    const char *choices; /* allowed words of a text, separated by '|', or NULL */
} cli_option;

/* Divides argv into options and the rest. Returns 1 if the command is to run. Otherwise help was printed or the usage
 * is wrong, and *exit_code is the exit code. `rest` needs memory for argc pointers. */
int cli_parse(const cli_command *command, const cli_option *options, int argc, char **argv, const char **rest,
              int *rest_count, int *exit_code);

/* "psld: message" as one line on stderr; control characters in names and arguments are escaped. */
void cli_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* "psld: COMMAND: message", and EXIT_USAGE. */
int cli_wrong_usage(const cli_command *command, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Fails like a function of the library, with this text for cli_failed. */
psld_status cli_bad_input(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* "psld: <error text>", and the exit code for a status. */
int cli_failed(psld_status status);

/* ": did you mean \"frog\"?" where one of the words is near, else "". Returns `text`. */
enum { CLI_MEANT = 128 };
const char *cli_meant(const char *word, const char *const *words, size_t count, char text[CLI_MEANT]);

/* A listener in place of the terminal, for a program that runs commands in its own threads: messages go to `message`,
 * which keeps the last one, and progress to `progress`. */
typedef struct cli_listener {
    char message[2048];
    psld_progress_fn progress;
    void *user;
} cli_listener;
/* Sets the listener of this thread; NULL: the terminal again. */
void cli_listen(cli_listener *listener);
cli_listener *cli_listener_get(void);

/* The value of a CLI_COUNT as an int, for options of the library; larger values become the largest int. */
int cli_int(long count);

/* Whether `path` ends in one of the '|'-separated endings. */
int cli_ends_in(const char *path, const char *endings);
/* Whether a file can be created at `path`: its folder exists and may be written. If not, prints a message. Call it
 * before long work. */
int cli_output_possible(const char *path);
/* Joins words with single spaces; NULL if memory runs out. Free with free(). */
char *cli_join(const char *const *words, int count);

/* "0.1, 1e-3" into numbers; returns how many, or -1 if one is not a number. */
int cli_numbers(const char *text, double *numbers, int room);

/* Signals (cli_signals.c). Call it first: closed pipes and limits of file sizes become errors of writes. */
void cli_signals_begin(void);
/* Calls a handler on the signals that ask the program to end (Ctrl-C, SIGTERM, a lost terminal), until they are restored. */
enum { CLI_SIGNALS = 3 };
void cli_signals_catch(void (*handler)(int), int flags, struct sigaction before[CLI_SIGNALS]);
void cli_signals_restore(const struct sigaction before[CLI_SIGNALS]);
/* Whether the reader of a descriptor has gone: a pipe without a reader, or a closed terminal. */
int cli_reader_gone(int fd);
/* From then on control characters in standard output are escaped (printable.c). */
void cli_output_begin(void);
/* Reports that standard output cannot be written, unless its reader has gone. Returns the exit code. */
int cli_output_failed(void);

/* The terminal (cli_terminal.c): whether standard error is one that a line can be written on again and again. */
int cli_terminal(void);
/* Writes that line: a bar for the finished part (negative: no bar), then as many of the pieces as fit the width, the
 * most important first. Writes nothing without a terminal. */
void cli_line_show(double part, const char *const *pieces, size_t count);
/* Erases the line. Messages and cli_say do so themselves. */
void cli_line_clear(void);
/* Text for people on standard error, as printf. */
void cli_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Ctrl-C prints that finished files are kept, unless another handler is set. */
void cli_interrupts_begin(void);
/* The text of cli_failed for interrupted work: what was kept, and how to continue. */
void cli_kept(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Progress with time left on a terminal, and Ctrl-C as cancellation, a second one as usual; `user` of the callback is a
 * cli_progress. */
typedef struct cli_progress {
    const char *what;
    double began, shown;
    struct sigaction before[CLI_SIGNALS]; /* the handlers before; restored at the end */
} cli_progress;
void cli_progress_begin(cli_progress *progress, const char *what);
int cli_progress_report(void *progress, uint64_t done, uint64_t total);
void cli_progress_end(cli_progress *progress);

double cli_seconds(void);

/* For commands that share their work under mpirun or srun: joins the other ranks, if there are any. Returns 0 and sets
 * the exit code if that fails. cli_ranks_end leaves them, and ends them all if this one has failed; returns its
 * argument. */
int cli_ranks_begin(int *exit_code);
int cli_ranks_end(int exit_code);
/* "12 s", "3 min 20 s", "2 h 15 min", "4 d 3 h"; returns `text`. */
enum { CLI_DURATION = 48 };
const char *cli_duration(double seconds, char text[CLI_DURATION]);

/* The options for opening a model, for the tables of commands that open one. CLI_MODEL_OPTIONS needs a cli_model m. */
typedef struct cli_model {
    psld_model_options options;
    const char *use, *weak;
} cli_model;
#define CLI_DEVICE_OPTION(device)                                                                                    \
    {                                                                                                                \
        "device", 0, CLI_TEXT, "cpu|gpu|opencl:N",                                                                   \
            "where networks are computed (default: a GPU, if there is one; psld devices lists all)", &(device), NULL \
    }
/* The device that was asked for; where none was, the one of cli_device_prefer, and by itself a GPU if there is one. */
const char *cli_device(const char *given);
void cli_device_prefer(const char *device);
/* Bytes of memory that a device has in all; 0: the CPU, whose memory is everybody's, or not known. */
uint64_t cli_device_memory(const char *id);
/* " of the 8.0 GB of device opencl:0"; "" for the CPU. Returns `text`. */
enum { CLI_DEVICE_ROOM = 96 };
const char *cli_device_room(const char *id, char text[CLI_DEVICE_ROOM]);
/* The same as keys of an object: device, and device_memory where it is known. */
void cli_device_report(json_t *object, const char *id);
#define CLI_MODEL_OPTIONS(m)                                                                                        \
    {"config",                                                                                                      \
     0,                                                                                                             \
     CLI_FILE,                                                                                                      \
     "FILE",                                                                                                        \
     "configuration of weights without one (of psld, or a published one)",                                          \
     &(m).options.config,                                                                                           \
     NULL},                                                                                                         \
        {"use", 0, CLI_TEXT, "ema|raw", "which weights, if a file has both (default ema)", &(m).use, "ema|raw"},    \
        {"ema",                                                                                                     \
         0,                                                                                                         \
         CLI_NUMBER,                                                                                                \
         "DECAY",                                                                                                   \
         "which average of weights, if a run has several (default: the first of train.ema)",                        \
         &(m).options.ema,                                                                                          \
         NULL},                                                                                                     \
        {"reference", 0, CLI_FLAG, NULL, "compute with the plain reference kernels", &(m).options.reference, NULL}, \
        {"isa",                                                                                                     \
         0,                                                                                                         \
         CLI_TEXT,                                                                                                  \
         "NAME",                                                                                                    \
         "instruction set: avx512, avx2, neon, generic or reference (default: the best of this processor)",         \
         &(m).options.isa,                                                                                          \
         NULL},                                                                                                     \
        {"precision",                                                                                               \
         0,                                                                                                         \
         CLI_TEXT,                                                                                                  \
         "fp32|bf16|fp16",                                                                                          \
         "number format of products in networks (default fp32; bf16: on the CPU; fp16: on other devices)",          \
         &(m).options.precision,                                                                                    \
         NULL},                                                                                                     \
        CLI_DEVICE_OPTION((m).options.device)
/* For commands that draw, and for convert: guidance by a weaker model. Commands that draw under a condition, or follow
 * the flow of the model itself, set m.weak to "none" first. */
#define CLI_WEAK_OPTIONS(m)                                                                                            \
    {"weak",                                                                                                           \
     0,                                                                                                                \
     CLI_FILE,                                                                                                         \
     "MODEL|none",                                                                                                     \
     "guide by a weaker model of the same data (default for samples from noise: the one in the model's file, if any)", \
     &(m).weak,                                                                                                        \
     NULL},                                                                                                            \
    {                                                                                                                  \
        "weak-scale", 0, CLI_NUMBER, "W",                                                                              \
            "strength: eps of the weak model plus W times the difference; 1 is no guidance (default: as the file "     \
            "says, or 1.5)",                                                                                           \
            &(m).options.weak_scale, NULL                                                                              \
    }
/* Converts the words of options into m->options. If no device was named, looks for a GPU. */
void cli_model_settle(cli_model *m);
/* Opens the model named by words[0]; the other words are overrides of its configuration. A .yaml file that is not an
 * exact model is a configuration: its network gets initial weights. */
psld_status cli_model_open(cli_model *m, const char *const *words, int count, psld_model **model);

/* The path of a model that comes with the program: in the folder $PSLD_MODELS, in `models` beside the program (as in a
 * build), or in share/psld/models of the installation, also after it was moved. Returns 0 if there is none. */
enum { CLI_PATH = 4096 };
int cli_shipped_model(const char *name, char path[CLI_PATH]);
/* The same for configurations: `configs` instead of `models`, $PSLD_CONFIGS; also the folder itself, and that of the
 * documentation (0: not installed). */
int cli_shipped_config(const char *name, char path[CLI_PATH]);
int cli_configs_folder(char path[CLI_PATH]);
int cli_docs_folder(char path[CLI_PATH]);
/* A configuration as a user names it: a file, or the bare name of one that comes with the program, from `folder` of its
 * configurations ("" or "sweeps/"). Returns `word` itself, or `path`. */
const char *cli_find_config(const char *word, const char *folder, char path[CLI_PATH]);
/* Fails because a word is neither a file nor a configuration; suggests a similar name. */
psld_status cli_no_config(const char *word);
/* Calls for every configuration that comes with the program, by name; 0: there are none. */
int cli_each_config(void (*each)(void *user, const char *name, const char *path), void *user);

/* The folders of configurations and documentation: for --help, and for man pages. */
void cli_print_folders(void);
void cli_print_man_files(void);

/* JSON: a number, or null where JSON has none; a k x k matrix; printing with all digits. */
json_t *cli_json_number(double number);
json_t *cli_json_numbers(const double *numbers, size_t count);
json_t *cli_json_matrix(const double *numbers, size_t rows, size_t columns);
int cli_json_print(json_t *object);

#endif
