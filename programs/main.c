/* psld: finds the command and runs it. */
#include <stdio.h>
#include <string.h>

#include "cli.h"

static const cli_command *const commands[] = {
    &command_demo,    &command_recipe,  &command_design,  &command_train,   &command_tune,   &command_stop,
    &command_sample,  &command_guide,   &command_inpaint, &command_restore, &command_encode, &command_interpolate,
    &command_score,   &command_eval,    &command_sweep,   &command_convert, &command_data,   &command_info,
    &command_configs, &command_devices, &command_bench,   &command_serve};
enum { COMMANDS = sizeof commands / sizeof *commands };

static const char about[] = "designs, trains, samples and evaluates diffusion generative models by the complete recipe";

static void main_print_help(void)
{
    printf("psld %s: %s\n\nUsage: psld COMMAND [options] [key=value ...]\n\n", psld_version(), about);
    for (int i = 0; i < COMMANDS; i++) printf("  %-8s %s\n", commands[i]->name, commands[i]->summary);
    printf("\n`psld demo` shows what it can do; `psld COMMAND --help` lists options and examples.\n");
    cli_print_folders();
}

static void main_print_man(void)
{
    printf(".TH PSLD 1 \"\" \"psld %s\" \"User Commands\"\n.SH NAME\npsld \\- %s\n", psld_version(), about);
    printf(".SH SYNOPSIS\n.B psld\n.I COMMAND\n[options] [key=value ...]\n.SH COMMANDS\n");
    for (int i = 0; i < COMMANDS; i++) printf(".TP\n.BR psld\\-%s (1)\n%s\n", commands[i]->name, commands[i]->summary);
    printf(".SH EXIT STATUS\n0 done, 1 failed, 2 wrong usage. Errors are one line on standard error.\n");
    cli_print_man_files();
}

/* Options and words come from the commands themselves: `psld COMMAND --options`, --choices OPTION and --words WORD list
 * them. Bash splits words at ':' and '=', so the word is taken from the line, and replies lose what precedes these. */
static void print_completion(void)
{
    printf("# bash completion for psld\n_psld() {\n"
           "    local word=${COMP_WORDS[COMP_CWORD]} command=${COMP_WORDS[1]} before=${COMP_WORDS[COMP_CWORD - 1]}\n"
           "    local line=${COMP_LINE:0:${COMP_POINT:-0}} words i\n"
           "    [ -z \"$line\" ] || word=${line##*[[:space:]]}\n"
           "    COMPREPLY=()\n    if [ \"$COMP_CWORD\" -eq 1 ]; then\n        COMPREPLY=($(compgen -W \"");
    for (int i = 0; i < COMMANDS; i++) printf("%s%s", commands[i]->name, i + 1 < COMMANDS ? " " : "");
    printf("\" -- \"$word\"))\n        return\n    fi\n"
           "    case $word in\n    -*) COMPREPLY=($(compgen -W \"$(psld \"$command\" --options 2>/dev/null)\" -- "
           "\"$word\")) ;;\n"
           "    *)\n        words=$(psld \"$command\" --choices \"$before\" 2>/dev/null)\n"
           "        case $before in -*) ;; *) words+=\" $(psld \"$command\" --words \"$word\" 2>/dev/null)\" ;; esac\n"
           "        COMPREPLY=($(compgen -W \"$words\" -- \"$word\") $(compgen -f -- \"$word\"))\n"
           "        [ \"${#COMPREPLY[@]}\" -ne 1 ] || [ \"${COMPREPLY[0]%%=}\" = \"${COMPREPLY[0]}\" ] || "
           "compopt -o nospace 2>/dev/null\n"
           "        [ -z \"$line\" ] || for i in \"${!COMPREPLY[@]}\"; do\n"
           "            COMPREPLY[i]=${COMPREPLY[i]#\"${word%%\"${word##*[:=]}\"}\"}\n"
           "        done ;;\n    esac\n}\n"
           "complete -o filenames -F _psld psld\n");
}

static const cli_command *find_command(const char *name)
{
    for (int i = 0; i < COMMANDS; i++)
        if (strcmp(commands[i]->name, name) == 0) return commands[i];
    return NULL;
}

/* A warning that is repeated, as by each of many calls, is printed once. */
static void print_log(void *user, psld_log_level level, const char *line)
{
    static char last[1024];
    (void)user;
    if (strcmp(line, last) == 0) return;
    snprintf(last, sizeof last, "%s", line);
    cli_complain("%s%s", level == PSLD_LOG_WARNING ? "warning: " : "", line);
}

static int main_run(int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : "--help";
    if (strcmp(word, "help") == 0 && argc > 2) { /* psld help COMMAND = psld COMMAND --help */
        static char help[] = "--help";
        argv[1] = argv[2];
        argv[2] = help;
        word = argv[1];
    }
    const cli_command *command = find_command(word);
    if (command) return command->run(command, argc - 2, argv + 2);
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || strcmp(word, "help") == 0)
        main_print_help();
    else if (strcmp(word, "--version") == 0)
        printf("psld %s\n", psld_version());
    else if (strcmp(word, "--man") == 0)
        main_print_man();
    else if (strcmp(word, "--completion") == 0)
        print_completion();
    else if (strcmp(word, "--commands") == 0)
        for (int i = 0; i < COMMANDS; i++) puts(commands[i]->name);
    else {
        const char *names[COMMANDS];
        char meant[CLI_MEANT];
        for (int i = 0; i < COMMANDS; i++) names[i] = commands[i]->name;
        cli_meant(word, names, COMMANDS, meant);
        cli_complain("no command \"%s\"%s psld --help lists them", word, *meant ? meant : ";");
        return EXIT_USAGE;
    }
    return EXIT_DONE;
}

int main(int argc, char **argv)
{
    cli_signals_begin();
    cli_output_begin();
    /* OpenBLAS starts no threads when it is loaded: each call of evaluation sets how many it uses. */
    setenv("OPENBLAS_NUM_THREADS", "1", 0);
    cli_interrupts_begin();
    psld_log_to(print_log, NULL);
    int exit_code = main_run(argc, argv);
    if (exit_code != EXIT_DONE || (fflush(stdout) == 0 && !ferror(stdout))) return exit_code;
    return cli_output_failed();
}
