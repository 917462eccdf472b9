#!/usr/bin/env bash
# psld tune: from a trained model to one that draws with few evaluations: runs on toys, what they draw, what is refused.
set -eu
. "$(dirname "$0")/lib.bash"

cat >base.yaml <<'EOF'
process: psld gamma=0.02
data: {path: "toy:moons", channels: 2}
model: {name: mlp, nf: 16, num_res_blocks: 1}
train: {batch: 32, steps: 40, lr: 4e-3, warmup: 5, ema: 0.9, checkpoint_every: 0, sample_every: 0, evaluate_every: 0}
EOF
sed 's/gamma=0.02/gamma=0.02/; s/num_res_blocks: 1/num_res_blocks: 1, predicts: data/' base.yaml >clean.yaml
few=(train.steps=30 train.batch=16 train.sample_every=15 train.sample_count=20 train.checkpoint_every=7
    train.evaluate_every=10 train.evaluate_count=16)

trains() { "$psld" train "$@" >"$logs/out" 2>"$logs/err" || fail "psld train $*: $(cat "$logs/err")"; }
tunes() { "$psld" tune "$@" >"$logs/out" 2>"$logs/err" || fail "psld tune $*: $(cat "$logs/err")"; }

check "a run and a model file are tuned, of eps and of clean data"
trains base.yaml -o base
trains clean.yaml -o clean process=vp train.steps=10
tunes base --consistency -o fast "${few[@]}"
for file in config.yaml log.jsonl model.safetensors index.html checkpoints/step-000000030.safetensors \
    samples/step-000000015.png samples/step-000000030.png; do
    [ -s "fast/$file" ] || fail "no fast/$file"
done
grep -q "loss: consistency" fast/config.yaml || fail "another loss: $(cat fast/config.yaml)"
[ "$(grep -c held_out fast/log.jsonl)" -eq 3 ] || fail "not three measurements of the loss"
tunes clean/model.safetensors --consistency -o fast-clean "${few[@]}"

check "the model says that it is tuned, and is drawn with 2 evaluations"
quietly info fast/model.safetensors
says "tuned"
quietly info fast/model.safetensors --json
json '.network.tuned == "consistency"'
quietly info base/model.safetensors --json
json '.network.tuned == null'
quietly sample fast -n 5 -o two.npy --json
json '.nfe == 2 and .sampler == "consistency"'
quietly sample fast -n 5 --sampler consistency --nfe 2 -o named.npy
cmp two.npy named.npy || fail "the default is not what its name draws"
for nfe in 1 3 4 7; do
    quietly sample fast -n 5 --nfe $nfe -o few.npy --json
    json ".nfe == $nfe"
    ! cmp -s few.npy two.npy || fail "$nfe evaluations draw as 2"
done

check "grids of noise levels, other recipes, other samplers"
quietly sample fast -n 5 --grid sigma:5,1 -o levels.npy --json
json '.nfe == 3'
quietly sample fast -n 5 --end-sigma 0.5 -o end.npy
quietly sample fast -n 5 --grid sigma:0.5 -o same.npy
cmp end.npy same.npy || fail "--end-sigma is not the noise of the last evaluation"
quietly sample fast -n 5 --process cld -o cld.npy --json
json '.sampler == "consistency" and .process == "cld"'
quietly sample fast-clean -n 5 --process told -o told.npy
"$psld" sample fast -n 5 --sampler ancestral --nfe 9 -o other.npy --json >"$logs/out" 2>"$logs/err"
json '.sampler == "ancestral" and .nfe == 9'
grep -q "warning: sampler ancestral: the model is tuned" "$logs/err" || fail "no warning: $(cat "$logs/err")"

check "the same bits for every batch and number of threads"
for model in fast fast-clean; do
    for nfe in 1 2 4; do
        quietly sample $model -n 50 --nfe $nfe --seed 5 --state -o all.npy
        for how in "--batch 1" "--batch 7 --threads 2" "--threads 1"; do
            # shellcheck disable=SC2086
            quietly sample $model -n 50 --nfe $nfe --seed 5 --state $how -o now.npy
            cmp now.npy all.npy || fail "$model, $nfe evaluations, $how: other bits"
        done
    done
done

check "stopped and gone on with: bit for bit, by either command"
tunes base --consistency -o stopped "${few[@]}" train.steps=30 --threads 1 &
pid=$!
for _ in $(seq 200); do
    [ -e stopped/checkpoints/step-000000007.safetensors ] && break
    sleep 0.02
done
kill -INT $pid 2>/dev/null || true
wait $pid || true
tunes base --consistency -o stopped "${few[@]}"
cmp stopped/model.safetensors fast/model.safetensors || fail "a run that was stopped ends elsewhere"
tunes base --consistency -o longer "${few[@]}" train.steps=20
trains -o longer train.steps=30
tunes base --consistency -o whole "${few[@]}" train.schedule=constant
refuses 1 "belongs to another configuration" tune base --consistency -o whole "${few[@]}" train.lr=1e-5

check "an estimate writes nothing"
"$psld" tune base --consistency --estimate --json train.batch=16 >"$logs/out" 2>"$logs/err"
json '.seconds > 0 and .steps > 0'

check "labels and guidance"
trains base.yaml -o labelled model.classes=auto train.steps=10
tunes labelled --consistency -o fast-labels "${few[@]}" train.steps=10
quietly sample fast-labels --label 1 -n 9 -o plain.npy --json
json '.sampler == "consistency" and .nfe == 2'
quietly sample fast-labels --label 1 --cfg 3 -n 9 -o guided.npy
! cmp -s plain.npy guided.npy || fail "guidance changes nothing"

check "what cannot be tuned"
write_mixture m.yaml
write_networks
trains base.yaml -o short 'process=vp beta=[0.1,1]' train.steps=2
cat >gentle.yaml <<'EOF'
{name: gentle, H: x^2/2 + m^2/2, D: [[0, 0], [0, 1 + 0.5/(1 + x^2)]], Q: [[0, -1], [1, 0]], beta: 3, steps: 20}
EOF
sed 's/psld gamma=0.02/gentle.yaml/; s/num_res_blocks: 1/num_res_blocks: 1, embedding_type: positional/' base.yaml >formulas.yaml
trains formulas.yaml -o formulas train.steps=2
refuses 1 "is a classifier" tune c.safetensors --consistency -o no
refuses 1 "is an exact model" tune m.yaml --consistency -o no
refuses 1 "data.path is missing" tune net.safetensors --consistency -o no
refuses 1 "none.safetensors" tune none.safetensors --consistency -o no
refuses 1 "the noise of recipe vp is" tune short --consistency -o no
refuses 2 "--consistency" tune base -o no
refuses 2 "no model given" tune --consistency -o no
refuses 2 "no output" tune base --consistency
refuses 1 "train.loss: a model is tuned with consistency, found hsm" tune base --consistency -o no train.loss=hsm
refuses 1 "has no likelihood" eval fast toy:moons --metric nll -n 4
refuses 1 "train.stages" tune base --consistency -o no train.stages=3
refuses 1 "train.consistency_q" tune base --consistency -o no train.consistency_q=1
refuses 2 "not tuned for it; psld tune" sample base -n 5 --sampler consistency -o no.npy
refuses 2 "not tuned for it; psld tune" sample m.yaml -n 5 --sampler consistency -o no.npy
refuses 1 "train.sampler: consistency needs train.loss" train base.yaml -o no train.sampler=consistency
refuses 2 "grid" sample fast -n 5 --grid sigma:1,2 -o no.npy
refuses 2 "corrector" sample fast -n 5 --corrector 1 -o no.npy
refuses 1 "has formulas" tune formulas --consistency -o no
