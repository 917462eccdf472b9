#!/usr/bin/env bash
# Configurations: keys of images, runs of older versions, what is refused.
set -eu
. "$(dirname "$0")/lib.bash"

# trains ARGUMENTS: must succeed; what it says on stderr is progress.
trains() { "$psld" train "$@" >"$logs/out" 2>"$logs/err" || fail "psld train $*: $(cat "$logs/err")"; }

cat >net.yaml <<'EOF'
process: psld gamma=0.02
data: {size: 8, channels: 1}
model: {name: ncsnpp, nf: 8, ch_mult: [1, 2], num_res_blocks: 1, attn_resolutions: [4]}
train: {batch: 4, steps: 2, warmup: 0, sample_every: 0, evaluate_every: 0}
EOF
sed 's/size: 8/size: 16/' net.yaml >net16.yaml
quietly convert net16.yaml net16.safetensors
quietly sample net16.safetensors -n 6 --sampler em --nfe 2 -o pictures

check "data.resample: another filter, other images; a run keeps to its own"
trains net.yaml --data pictures -o lanczos
grep -q 'resample: lanczos' lanczos/config.yaml || fail "data.resample is not in the run's configuration"
trains net.yaml --data pictures -o bilinear data.resample=bilinear
! cmp -s lanczos/model.safetensors bilinear/model.safetensors || fail "the filter changes nothing"
refuses 1 "data.resample is lanczos there and bilinear now" train -o lanczos data.resample=bilinear
refuses 1 "expected lanczos|bilinear|bicubic|box|nearest|bilinear_plain" train net.yaml --data pictures -o x \
    data.resample=cubic

check "a run of an older version, whose configuration lacks a key, goes on"
sed -i '/resample:/d' lanczos/config.yaml
trains -o lanczos train.steps=3
grep -q 'resample: lanczos' lanczos/config.yaml || fail "the newer key was not added"
