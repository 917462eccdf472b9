#!/usr/bin/env bash
# Runs and models that psld 0.1 wrote (tests/files-0.1) open and resume bit for bit; formats that are newer are refused.
set -eu
. "$(dirname "$0")/lib.bash"

files=$(cd "$(dirname "$0")/../files-0.1" && pwd)
cp -r "$files"/* .

# The bits are those of the AVX2 kernels.
grep -q avx2 /proc/cpuinfo || skip_all "the stored outputs need a processor with AVX2"

# same NAME: NAME.npy has the bits that 0.1 drew.
same() { cmp "$1.npy" "$files/expected/$1.npy" || fail "$1: other samples than those of psld 0.1"; }

# resumes RUN STEPS: goes on, with the losses of 0.1. Exponents may be written with fewer digits.
resumes() {
    "$psld" train -o "$1" --isa avx2 train.steps="$2" >"$logs/out" 2>"$logs/err" || fail "$1 does not resume: $(cat "$logs/err")"
    plain='s/, "seconds": [^,}]*//; s/e\([-+]\)0*/e\1/g'
    sed "$plain" "$1/log.jsonl" >"$logs/log"
    sed "$plain" "$files/expected/$1.jsonl" | cmp - "$logs/log" || fail "$1: another log: $(cat "$logs/log")"
}

draw="--isa avx2 -n 4 --nfe 10 --seed 1"
few="--isa avx2 -n 2 --nfe 6 --seed 1"

check "models of 0.1 open: runs, further averages, raw weights, a weak model in the file, a classifier"
# shellcheck disable=SC2086
{
    quietly sample toy --sampler sscs $draw -o toy.npy
    quietly sample toy --ema 0.5 --sampler em $draw -o toy-second.npy
    quietly sample guided.safetensors --sampler em $draw -o guided.npy
    quietly sample image --sampler sscs $few -o image.npy
    quietly sample image --use raw --sampler em $few -o image-raw.npy
    quietly guide image --classifier classifier --label dots $few -o guide.npy
}
for name in toy toy-second guided image image-raw guide; do same $name; done

check "runs of 0.1 resume"
resumes toy 12
resumes image 6
resumes classifier 6
# shellcheck disable=SC2086
{
    quietly sample toy --sampler sscs $draw -o toy-resumed.npy
    quietly sample image --sampler sscs $few -o image-resumed.npy
    quietly guide image --classifier classifier --label dots $few -o guide-resumed.npy
}
for name in toy image guide; do same $name-resumed; done

check "a format that is newer is refused, and nothing is written"
# other_format FILE KEY: the same file with format 9.
other_format() {
    LC_ALL=C sed -i "s/\"$2\":\"[0-9]\"/\"$2\":\"9\"/" "$1"
    LC_ALL=C grep -aq "\"$2\":\"9\"" "$1" || fail "$1 has no $2"
}
other_format toy/checkpoints/step-000000012.safetensors psld.checkpoint
cp toy/model.safetensors model.safetensors
refuses 1 "format 9" train -o toy train.steps=14
refuses 1 "format 9" sample toy --use raw -n 1 -o no.npy
cmp toy/model.safetensors model.safetensors || fail "the model was written"
[ -e toy/checkpoints/step-000000012.safetensors ] || fail "the newer checkpoint was set aside"
other_format model.safetensors psld.format
refuses 1 "format 9" sample model.safetensors -n 1 -o no.npy
