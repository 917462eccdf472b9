#!/usr/bin/env bash
# psld guide, inpaint and restore when they are interrupted: the samples of finished batches are written, with the same bits
# as without the interruption.
set -eu
. "$(dirname "$0")/lib.bash"

write_networks 3 cat dog
write_mixture m.yaml
quietly sample net.safetensors -n 2 --nfe 3 -o pictures
rm pictures/*.json

# interrupts OUT SIGNAL ARGUMENTS: runs the program and sends the signal when a batch is finished. Nothing tells when that
# is, so it is tried with longer and longer pauses. What is kept is in $kept.
interrupts() {
    local out=$1 signal=$2 pause code pid
    shift 2
    for pause in 0.1 0.2 0.4 0.8 1.6 3.2 6.4 12.8; do
        # A shell lets its background jobs ignore SIGINT: a signal that comes early would be lost.
        env --default-signal=INT "$psld" "$@" --batch 2 --threads 1 -o "$out" >"$logs/out" 2>"$logs/err" &
        pid=$!
        sleep $pause
        kill -"$signal" $pid
        code=0
        wait $pid || code=$?
        [ "$code" -ne $((128 + $(kill -l "$signal"))) ] || continue # before the signal was awaited
        [ "$code" -eq 1 ] || fail "exit code $code: $(cat "$logs/err")"
        [ ! -s "$logs/out" ] || fail "on stdout: $(cat "$logs/out")"
        [ "$(wc -l <"$logs/err")" -eq 1 ] || fail "not one line: $(cat "$logs/err")"
        kept=$(sed -n "s/^psld: interrupted: $out has \([0-9]*\) of [0-9]* samples$/\1/p" "$logs/err")
        [ -z "$kept" ] || return 0
        grep -q "^psld: interrupted" "$logs/err" || fail "$(cat "$logs/err")"
        [ ! -e "$out" ] || fail "$out was written without samples"
    done
    fail "no batch was finished: $(cat "$logs/err")"
}

# same_start LONG SHORT COUNT: the arrays of float32 begin with the same COUNT numbers.
same_start() {
    local skip
    [ "$3" -gt 0 ] || fail "nothing to compare"
    skip=$(($(wc -c <"$2") - 4 * $3))
    cmp <(tail -c +$((skip + 1)) "$2") <(tail -c +$((skip + 1)) "$1" | head -c $((4 * $3))) || fail "$2: other samples"
}

guided="guide net.safetensors --classifier c.safetensors --nfe 40"
check "guide: an array has the samples of finished batches"
# shellcheck disable=SC2086
interrupts part.npy INT $guided --label all -n 100000
# shellcheck disable=SC2086
quietly $guided --label 0 -n "$kept" -o whole.npy
same_start whole.npy part.npy $((kept * 192))
quietly info part.npy --json
says "\"shape\": [$kept, 3, 8, 8]"

check "guide: a folder and a sheet"
# shellcheck disable=SC2086
interrupts rows TERM $guided --label all -n 1000
[ "$(find rows -name '*.png' | wc -l)" -eq "$kept" ] || fail "rows has $(find rows -name '*.png' | wc -l), not $kept"
# shellcheck disable=SC2086
interrupts sheet.png INT $guided --label all -n 1000
quietly info sheet.png

check "guide: points of an exact model"
interrupts points.npy INT guide m.yaml --label 1 --nfe 1000 -n 1000000
quietly guide m.yaml --label 1 --nfe 1000 -n "$kept" -o whole.npy
same_start whole.npy points.npy $((kept * 2))

filling="inpaint net.safetensors --image pictures --rect 0,4,8,4 --nfe 40 --method replace"
check "inpaint: images without samples are left out"
# shellcheck disable=SC2086
interrupts filled INT $filling -n 1000
[ "$(find filled/samples -name '*.png' | wc -l)" -eq "$kept" ] || fail "samples: not $kept"
for name in originals corrupted; do
    [ "$(find filled/$name -name '*.png' | wc -l)" -eq $(((kept + 999) / 1000)) ] || fail "$name: $(ls filled/$name)"
done
# shellcheck disable=SC2086
interrupts filled.npy INT $filling -n 100000
quietly inpaint net.safetensors --image pictures/000000.png --rect 0,4,8,4 --nfe 40 --method replace -n "$kept" -o whole.npy
same_start whole.npy filled.npy $((kept * 192))

restoring="restore net.safetensors --task denoise --noise 0.1 --method diffused --image pictures --nfe 40"
check "restore: the last strip is shorter"
# shellcheck disable=SC2086
interrupts strips.png INT $restoring -n 1000
quietly info strips.png
# shellcheck disable=SC2086
interrupts restored.npy INT $restoring -n 100000
quietly restore net.safetensors --task denoise --noise 0.1 --method diffused --image pictures/000000.png --nfe 40 \
    -n "$kept" -o whole.npy
same_start whole.npy restored.npy $((kept * 192))

check "restore: many images, of which the first are done"
quietly sample net.safetensors -n 2000 --nfe 2 -o many.npy
interrupts several INT restore net.safetensors --task denoise --noise 0.1 --method diffused --image many.npy --nfe 40 -n 30
[ "$(find several/samples -name '*.png' | wc -l)" -eq "$kept" ] || fail "samples: not $kept"
[ "$(find several/corrupted -name '*.png' | wc -l)" -eq $(((kept + 29) / 30)) ] || fail "measurements: not those of $kept"
quietly info several/strips.png
