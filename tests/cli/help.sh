#!/usr/bin/env bash
# Help, man pages, completion, version: all made from the tables of the commands.
set -eu
. "$(dirname "$0")/lib.bash"

check "--version agrees with the header"
quietly --version
grep -qE '^psld [0-9]+\.[0-9]+\.[0-9]+$' "$logs/out" || fail "$(cat "$logs/out")"

check "psld, psld help, --help, -h name every command"
quietly --commands
commands=$(cat "$logs/out")
for command in demo recipe sample info; do grep -qx $command <<<"$commands" || fail "no command $command"; done
for how in "" help --help -h; do
    # shellcheck disable=SC2086
    quietly $how
    for command in $commands; do says "  $command "; done
done

check "each command has --help with its options and examples, and a man page"
for command in $commands; do
    quietly "$command" --options
    options=$(cat "$logs/out")
    grep -qx -- --help <<<"$options" || fail "$command --options has no --help"
    for how in "$command --help" "$command -h" "help $command"; do
        # shellcheck disable=SC2086
        quietly $how
        says "Usage: psld $command"
        says "Examples:"
        says "  psld $command"
        for option in $options; do says "$option"; done
    done
    quietly "$command" --man
    grep -qE "^\.TH PSLD.*$(tr '[:lower:]' '[:upper:]' <<<"$command") 1 " "$logs/out" || fail "$command --man: no .TH"
    for section in NAME SYNOPSIS DESCRIPTION OPTIONS EXAMPLES; do says ".SH $section"; done
    for option in $options; do says "${option//-/\\-}"; done
done
quietly --man
grep -q '^\.TH PSLD 1 ' "$logs/out" || fail "--man: no .TH"
for command in $commands; do says "psld\\-$command"; done

check "completion of commands, options and choices"
quietly --completion
cp "$logs/out" completion.bash
bash -n completion.bash || fail "the completion is no bash"
mkdir bin
printf '#!/bin/sh\nexec "%s" "$@"\n' "$psld" >bin/psld
chmod +x bin/psld
complete_line() { # WORDS...: what the last of them may become
    PATH=$PWD/bin:$PATH bash -c '
        . ./completion.bash
        COMP_WORDS=("$@")
        COMP_CWORD=$(($# - 1))
        _psld
        printf "%s\n" "${COMPREPLY[@]}"' completion "$@"
}
[ "$(complete_line psld rec)" = recipe ] || fail "psld rec: $(complete_line psld rec)"
[ "$(complete_line psld "" | sort)" = "$(sort <<<"$commands")" ] || fail "psld: $(complete_line psld "")"
[ "$(complete_line psld sample --samp)" = --sampler ] || fail "--samp: $(complete_line psld sample --samp)"
[ "$(complete_line psld sample --sampler ss)" = sscs ] || fail "--sampler ss: $(complete_line psld sample --sampler ss)"
[ "$(complete_line psld recipe comp)" = completion.bash ] || fail "file: $(complete_line psld recipe comp)"

check "completion of keys, toys, presets, samplers and grids; of words that bash cuts in pieces"
for word in train.lr= model.predicts= process= toy:moons; do
    complete_line psld train "" | grep -qx -- "$word" || fail "psld train: no $word"
done
[ "$(complete_line psld train train.lr)" = train.lr= ] || fail "train.lr: $(complete_line psld train train.lr)"
complete_line psld train cifar10-psld | grep -qx cifar10-psld-55m || fail "configurations: $(complete_line psld train cifar10-psld)"
[ "$(complete_line psld configs celeba64-psld-6)" = "$(printf 'celeba64-psld-62m\nceleba64-psld-66m')" ] || fail "psld configs"
[ "$(complete_line psld recipe psld-ce)" = psld-celeba64 ] || fail "psld-ce: $(complete_line psld recipe psld-ce)"
[ "$(complete_line psld sample --grid quad)" = quadratic ] || fail "--grid quad: $(complete_line psld sample --grid quad)"
cut_line() { # LINE WORDS...: the same of a line as bash cuts it
    PATH=$PWD/bin:$PATH COMP_LINE=$1 COMP_POINT=${#1} bash -c '
        . ./completion.bash
        COMP_WORDS=("$@")
        COMP_CWORD=$(($# - 1))
        _psld
        printf "%s\n" "${COMPREPLY[@]}"' completion "${@:2}"
}
[ "$(cut_line "psld train toy:mo" psld train toy : mo)" = moons ] || fail "toy:mo"
[ "$(cut_line "psld train train.loss=d" psld train train.loss = d)" = dsm ] || fail "train.loss=d"
[ "$(cut_line "psld train process=psld-af" psld train process = psld-af)" = psld-afhqv2 ] || fail "process="

check "wrong usage"
refuses 2 'no command "recipie": did you mean "recipe"?' recipie
refuses 2 'no command "nonsense"' nonsense
refuses 2 'no command "--nonsense"' --nonsense
refuses 2 'no command "two?lines"' $'two\nlines'
refuses 2 'no command "nonsense"' help nonsense

check "standard output that cannot be written to"
if [ -w /dev/full ]; then
    for words in "recipe psld --json" "recipe psld" "recipe --list" --help --version --man --completion "sample --help" \
        "sample --man"; do
        code=0
        # shellcheck disable=SC2086
        "$psld" $words >/dev/full 2>"$logs/err" || code=$?
        [ "$code" -eq 1 ] || fail "psld $words >/dev/full: exit code $code"
        [ "$(wc -l <"$logs/err")" -eq 1 ] || fail "psld $words >/dev/full: not one line: $(cat "$logs/err")"
        grep -q '^psld: .*standard output' "$logs/err" || fail "psld $words >/dev/full: $(cat "$logs/err")"
    done
fi
