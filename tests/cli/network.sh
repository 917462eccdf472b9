#!/usr/bin/env bash
# Networks on the command line: info, bench, convert and score, and what they refuse.
set -eu
. "$(dirname "$0")/lib.bash"
source=$(cd "$(dirname "$0")/../.." && pwd)

cat >net.yaml <<'EOF'
process: psld gamma=0.02
data: {size: 8, channels: 1}
model: {name: ncsnpp, nf: 8, ch_mult: [1, 2], num_res_blocks: 1, attn_resolutions: [4]}
EOF

check "info of every configuration, and the paper's counts of parameters"
for config in "$source"/configs/*.yaml; do
    quietly info "$config"
    says "M parameters"
done
for pair in cifar10-psld-39m:39.40M cifar10-psld-55m:56.41M cifar10-psld-97m:97.63M celeba64-psld-62m:62.77M \
    celeba64-psld-66m:66.72M afhq128-psld-68m:65.82M afhq128-psld-128m:128.45M cifar10-classifier:56.67M \
    afhq128-classifier:57.76M; do
    quietly info "$source/configs/${pair%:*}.yaml"
    says "${pair#*:} parameters"
done

check "bench"
quietly bench net net.yaml -b 2 --repetitions 1 --json
json '.seconds_per_image > 0 and .gflops > 0 and .peak_bytes > 1e6 and .threads >= 1'
json 'any(.operations[]; .kernel | contains("conv 3 x 3"))'
json '[.operations[].seconds_per_image] | add | 0 < . and . < 10'
for isa in reference generic; do
    quietly bench net net.yaml --isa $isa --repetitions 1 --json
    json ".isa == \"$isa\" and .precision == \"fp32\""
done
quietly bench net net.yaml --precision bf16 --repetitions 1 --json
json '.precision == "bf16"'
quietly bench net net.yaml --plan
says conv
says "ms   Gflop/s"
quietly bench net net.yaml model.nf=16 --repetitions 1
says parameters

check "convert there and back: the same bytes"
quietly convert net.yaml net.safetensors
quietly convert net.safetensors net.pt
quietly convert net.pt again.safetensors
cmp net.safetensors again.safetensors || fail "round trip"
quietly info net.safetensors --tensors
says "net.safetensors: score network, "
says all_modules.0
quietly info net.pt --json
json '.kind == "tensors" and .numbers > 1000 and .tensors[0].type == "float32"'

check "convert --loss: the file says which kernel its eps belongs to, and samples are made with it"
quietly convert net.safetensors dsm.safetensors --loss dsm
quietly sample net.safetensors -n 1 --sampler sscs --nfe 5 -o hsm.npy
quietly sample dsm.safetensors -n 1 --sampler sscs --nfe 5 -o dsm.npy
! cmp -s hsm.npy dsm.npy || fail "--loss dsm changes nothing"
quietly sample net.safetensors train.loss=dsm -n 1 --sampler sscs --nfe 5 -o also.npy
cmp dsm.npy also.npy || fail "train.loss=dsm is not --loss dsm"
refuses 2 "expected hsm|dsm" convert net.safetensors bad.safetensors --loss l2
refuses 1 "kernel (the loss of training) is dsm, not hsm" sample net.safetensors --weak dsm.safetensors -n 1 -o weak.npy

# States and times by sampling something: 3 states of 2 x 8 x 8 numbers, and 3 numbers.
zeros=0$(printf ', 0%.0s' $(seq 63))
echo "{mixture: {weights: [1], means: [[$zeros]], scales: 1}, process: psld}" >states.yaml
echo "{mixture: {weights: [1], means: [[0.5]], scales: 0.01}, process: vp}" >times.yaml
quietly sample states.yaml -n 3 --nfe 4 --state -o z.npy
quietly sample times.yaml -n 3 --nfe 50 -o t.npy

check "score: the same bits from either file and for any number of threads"
quietly score net.safetensors --z z.npy --t t.npy -o a.npy --threads 1
quietly score net.pt --z z.npy --t t.npy -o b.npy --threads 2
cmp a.npy b.npy || fail "score differs"
quietly score net.safetensors --z z.npy --t t.npy -o a.npy --grad-out a.npy --grad-z g.npy
quietly info g.npy --json
json '.shape == [3, 128]'
quietly score net.safetensors --reference --z z.npy --t t.npy -o c.npy

check "refusals"
refuses 1 "README.md" score "$source/README.md" --z z.npy --t t.npy -o x.npy
refuses 2 "--z" score net.safetensors -o x.npy
refuses 2 "z: expected" score net.safetensors --z t.npy --t t.npy -o x.npy
refuses 1 "grad-out" score net.safetensors --z z.npy --t t.npy -o x.npy --grad-z y.npy
refuses 1 "all_modules" score net.safetensors model.nf=16 --z z.npy --t t.npy -o x.npy
refuses 1 "override" score net.safetensors nonsense --z z.npy --t t.npy -o x.npy
refuses 2 "OUT" convert net.safetensors net.txt
refuses 1 "cannot write" convert net.safetensors absent/net.pt
head -c 1000 net.safetensors >short.safetensors
refuses 1 "short.safetensors" convert short.safetensors x.pt
refuses 1 "short.safetensors" info short.safetensors --json
printf '\200\002cos\nsystem\nX\004\000\000\000trueq\000\205Rq\001.' >evil.pt
refuses 1 "evil.pt" convert evil.pt x.safetensors
refuses 2 "net" bench nothing
refuses 2 "isa: expected" bench net net.yaml --isa sse9
refuses 2 "precision: expected fp32 or bf16, found 'fp8'" bench net net.yaml --precision fp8
refuses 2 "the reference kernels have only fp32" bench net net.yaml --isa reference --precision bf16
refuses 1 "absent.yaml" bench net absent.yaml

check "sample: images of the model's shape, the same bits for any batch"
quietly sample net.safetensors -n 5 --nfe 4 -o one.npy --batch 1
quietly sample net.safetensors -n 5 --nfe 4 -o five.npy
cmp one.npy five.npy || fail "samples differ between batches"
quietly info one.npy --json
json '.shape == [5, 1, 8, 8]'
refuses 1 "needs an exact model" sample net.safetensors -n 5 --nfe 4 --start exact -o x.npy
refuses 2 ".png" sample net.safetensors -n 5 --nfe 4 -o x.svg
