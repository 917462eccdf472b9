#!/usr/bin/env bash
# process.learn: a recipe learned with its network: runs on toys, stopped and resumed, what they draw, what is refused.
set -eu
. "$(dirname "$0")/lib.bash"

cat >base.yaml <<'EOF2'
process: psld gamma=0.25
data: {path: "toy:moons", channels: 2}
model: {name: mlp, nf: 16, num_res_blocks: 1}
train: {loss: elbo, batch: 16, steps: 12, lr: 2e-3, warmup: 2, ema: 0.9, checkpoint_every: 4, sample_every: 0,
        evaluate_every: 6, evaluate_count: 8}
EOF2
all="process.learn=[D, Q, mass, beta]"
trains() { "$psld" train "$@" >"$logs/out" 2>"$logs/err" || fail "psld train $*: $(cat "$logs/err")"; }
losses() { sed 's/"seconds".*//' "$1/log.jsonl"; }

check "a recipe is learned: another one than that to begin with, and the model has it"
trains base.yaml "$all" -o whole
quietly info whole --recipe
cp "$logs/out" mine.yaml
says "name: psld-learned"
says "stabiliser: 0"
! grep -q "learn:" mine.yaml || fail "a recipe that learns: $(cat mine.yaml)"
! grep -q "D: \[\[0.125, 0\]" mine.yaml || fail "nothing learned: $(cat mine.yaml)"
quietly info whole/model.safetensors --recipe
cmp "$logs/out" mine.yaml || fail "the run's recipe is not the model's"
quietly info whole/checkpoints/step-000000012.safetensors --recipe
cmp "$logs/out" mine.yaml || fail "the checkpoint's recipe is not the model's"
quietly recipe mine.yaml
quietly info mine.yaml --recipe
cmp "$logs/out" mine.yaml || fail "does not read back"

check "bits per dimension are said of it"
quietly info whole
says "per dimension, an upper bound"
quietly info whole --json
json '.bits_per_dim == .held_out and .process == "psld-learned"'

check "stopped and resumed: the same bits, and the same with one thread or more"
trains base.yaml "$all" train.steps=5 -o parts
trains base.yaml "$all" train.steps=9 -o parts --threads 1
trains -o parts train.steps=12
cmp <(losses whole) <(losses parts) || fail "other losses"
cmp whole/model.safetensors parts/model.safetensors || fail "another model"
trains base.yaml "$all" -o threads --threads 3
cmp whole/model.safetensors threads/model.safetensors || fail "threads change the model"

check "a killed run continues with the same bits"
"$psld" train base.yaml "$all" -o killed train.checkpoint_every=1 >/dev/null 2>&1 &
pid=$!
for _ in $(seq 500); do [ -e killed/checkpoints/step-000000002.safetensors ] && break; sleep 0.02; done
kill -9 $pid 2>/dev/null || true
wait $pid 2>/dev/null || true
trains base.yaml "$all" train.checkpoint_every=1 -o killed
quietly info killed --recipe
cmp "$logs/out" mine.yaml || fail "another recipe after it was killed"

check "samples are drawn under the learned recipe, and other commands take it"
quietly sample whole -n 4 --nfe 5 -o a.npy --json
json '.process == "psld-learned"'
quietly sample whole -n 4 --nfe 5 --process mine.yaml -o b.npy
cmp a.npy b.npy || fail "the printed recipe is another one"
trains base.yaml process=mine.yaml train.steps=2 -o again

check "from any recipe and any part of it; a network of clean data has the bound, too"
for how in "vp|[D, beta]" "cld|[D, Q]" "told|[Q, mass, beta]" "hold n=4|[D, Q, beta]"; do
    trains base.yaml "process=${how%|*}" "process.learn=${how#*|}" train.eps=1e-3 train.steps=3 -o "one-${how%%[ |]*}"
done
trains base.yaml process=vp model.predicts=data train.steps=3 -o clean
trains base.yaml process=cld train.loss=hsm train.weighting=nll train.times=importance train.steps=3 -o nll
grep -q "times: importance" whole/config.yaml || fail "another law of times: $(cat whole/config.yaml)"

check "beside a network with the loss of eps: the bits are in the log, and it is resumed to the bit"
trains base.yaml "$all" train.loss=hsm -o beside train.accumulate=2
grep -q '"bits": ' beside/log.jsonl || fail "no bits: $(head -1 beside/log.jsonl)"
quietly info beside --json
json '.bits_per_dim != .held_out and .process == "psld-learned"'
trains base.yaml "$all" train.loss=hsm -o beside-parts train.accumulate=2 train.steps=5
trains -o beside-parts train.steps=12 --threads 2
cmp beside/model.safetensors beside-parts/model.safetensors || fail "another model"
! cmp -s whole/model.safetensors beside/model.safetensors || fail "the loss makes no difference"

check "what makes no sense is refused"
refuses 1 'expected some of D, Q, mass, beta, found "colour"' train base.yaml "process.learn=[D, colour]" -o no
refuses 1 "expected some of D, Q, mass, beta, found nothing" train base.yaml "process.learn=[]" -o no
refuses 1 "process.learn: needs train.loss = elbo or hsm" train base.yaml "$all" train.loss=dsm -o no
refuses 1 "process.learn: expected train.norm = l2" train base.yaml "$all" train.loss=hsm train.reduce=sum -o no
refuses 1 "process.learn: needs a network of eps" train base.yaml "$all" model.predicts=data -o no
refuses 1 "process.stabiliser: expected 0 with train.loss = elbo" train base.yaml "process=psld gamma=1 stabiliser=1e-9" -o no
refuses 1 "process.stabiliser: expected 0 with process.learn" train base.yaml "process=psld gamma=1 stabiliser=1e-9" "$all" -o no
refuses 1 "process.kernel: expected hsm with train.loss = elbo" train base.yaml "process=psld gamma=1 kernel=dsm" -o no
refuses 1 "expected their defaults with train.loss = elbo" train base.yaml train.weighting=nll -o no
refuses 1 "expected their defaults with train.loss = elbo" train base.yaml train.reduce=sum -o no
refuses 1 "with one variable it has nothing" train base.yaml process=vp "process.learn=[Q, mass]" -o no
refuses 1 "belongs to another configuration: process.learn" train base.yaml "process.learn=[D]" -o whole
refuses 1 "recipe psld: beta cannot be learned from one that is 0 at t = 0" \
    train base.yaml "process=psld beta=[0, 8]" "process.learn=[beta]" -o no
refuses 1 "process.learn: needs process" train --data toy:moons train.loss=elbo "process.learn=[D]" -o no
refuses 2 "goes alone" info whole --recipe --json
