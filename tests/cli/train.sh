#!/usr/bin/env bash
# psld train: short runs on toys; killed, stopped and continued; what the folder holds; what is refused.
set -eu
. "$(dirname "$0")/lib.bash"

cat >small.yaml <<'EOF'
process: cld
data: {path: "toy:moons", channels: 2}
model: {name: mlp, nf: 16, num_res_blocks: 1}
train: {batch: 16, steps: 60, lr: 1e-3, warmup: 5, ema: 0.9, checkpoint_every: 7, sample_every: 30, sample_count: 50,
        sample_nfe: 4, evaluate_every: 20, evaluate_count: 16}
EOF

# trains ARGUMENTS: must succeed; what it says on stderr is progress.
trains() { "$psld" train "$@" >"$logs/out" 2>"$logs/err" || fail "psld train $*: $(cat "$logs/err")"; }

check "the files of a run"
trains small.yaml -o whole
for file in config.yaml log.jsonl loss.png model.safetensors checkpoints/step-000000060.safetensors \
    samples/step-000000030.png samples/step-000000060.png; do
    [ -s "whole/$file" ] || fail "no whole/$file"
done
[ "$(wc -l <whole/log.jsonl)" -eq 60 ] || fail "not a line a step"
[ "$(ls whole/checkpoints | wc -l)" -eq 2 ] || fail "more checkpoints kept than two"
quietly info whole --json
json '.kind == "training run" and .step == 60 and .saved == 60 and .running == false and .loss > 0'
quietly sample whole -n 5 --nfe 4 -o x.npy
quietly sample whole/checkpoints/step-000000060.safetensors --use raw -n 5 --nfe 4 -o raw.npy
! cmp -s x.npy raw.npy || fail "raw and averaged weights are the same"

check "several averages: the first is the model, the others are chosen by their decay"
trains small.yaml -o averages 'train.ema=[0.9, 0.5]' train.sample_every=0
quietly sample averages -n 5 --nfe 4 -o first.npy
quietly sample averages -n 5 --nfe 4 --ema 0.9 -o same.npy
quietly sample averages -n 5 --nfe 4 --ema 0.5 -o second.npy
cmp first.npy same.npy || fail "the first average is not the model"
! cmp -s first.npy second.npy || fail "two averages are the same"
quietly convert averages half.safetensors --ema 0.5
quietly sample half.safetensors -n 5 --nfe 4 -o half.npy
cmp second.npy half.npy || fail "convert --ema took another average"
refuses 1 "train.ema has no average of decay 0.7" sample averages --ema 0.7 -n 5 -o none.npy

check "a distance is measured while it trains, and the best model kept"
trains small.yaml -o measured train.metric_every=20 train.metric_count=50 train.sample_every=0
[ "$(grep -c '"metric": [0-9]' measured/log.jsonl)" -eq 3 ] || fail "not three distances: $(cat measured/log.jsonl)"
[ -s measured/best.safetensors ] || fail "no best.safetensors"
quietly sample measured/best.safetensors -n 5 --nfe 4 -o best.npy
refuses 1 "train.metric_weights: nowhere.pth" train small.yaml -o none train.metric_every=20 train.metric_weights=nowhere.pth
refuses 1 "features need images" train small.yaml -o none train.metric_every=20 train.metric_weights=best.npy
[ ! -e none ] || fail "a run without its metric has begun"

check "killed at any moment, the same command continues to the same end"
for i in 1 2 3 4 5 6; do
    "$psld" train small.yaml -o killed >/dev/null 2>&1 &
    pid=$!
    sleep 0.0$((RANDOM % 10))
    while [ $i -gt 3 ] && kill -0 $pid 2>/dev/null && ! ls killed/checkpoints/* >/dev/null 2>&1; do sleep 0.01; done
    kill -9 $pid 2>/dev/null || true
    wait $pid 2>/dev/null || true
done
ls killed/checkpoints/* >/dev/null 2>&1 || fail "never killed after a checkpoint"
trains small.yaml -o killed
cmp whole/model.safetensors killed/model.safetensors || fail "another model after kill -9"
cut -d, -f1-4 whole/log.jsonl >"$logs/a"
cut -d, -f1-4 killed/log.jsonl >"$logs/b"
cmp "$logs/a" "$logs/b" || fail "another log after kill -9"

check "stopped by a signal: a checkpoint, and how to go on"
for signal in INT TERM HUP; do
    rm -rf stopped
    "$psld" train small.yaml -o stopped train.steps=1000000 train.checkpoint_every=0 train.sample_every=0 2>"$logs/err" &
    pid=$!
    for i in $(seq 200); do
        [ "$(wc -l 2>/dev/null <stopped/log.jsonl || echo 0)" -lt 3 ] || break
        sleep 0.05
    done
    code=0
    kill -$signal $pid
    wait $pid || code=$?
    [ $code -gt 128 ] || fail "exit code $code after SIG$signal"
    grep -q "psld train -o stopped" "$logs/err" || fail "does not say how to go on: $(cat "$logs/err")"
    [ "$(ls stopped/checkpoints | wc -l)" -eq 1 ] || fail "no checkpoint after SIG$signal"
done
steps=$(wc -l <stopped/log.jsonl)
trains -o stopped train.steps=$((steps + 3))
[ "$(wc -l <stopped/log.jsonl)" -eq $((steps + 3)) ] || fail "did not go on by three steps"

check "data alone: a network is chosen and shown"
trains toy:rings -o chosen train.steps=2 model.nf=16 train.batch=8 train.sample_nfe=2
grep -q "chosen" "$logs/err" && grep -q "recipe psld" "$logs/err" || fail "does not say what it chose"
! grep -q "name: mlp" "$logs/err" || fail "shows every key without being asked"
grep -q "^done: 2 steps" "$logs/err" || fail "no last word: $(cat "$logs/err")"

check "a finished run says so, and how to go on; every key with -v"
trains -o chosen -v
grep -q "^chosen is finished: 2 of 2 steps are done. To train further: psld train -o chosen train.steps=4$" "$logs/err" || fail "$(cat "$logs/err")"
grep -q "name: mlp" "$logs/err" || fail "-v does not show every key"

check "a time decides the steps, of chosen networks and of configurations; a continued run keeps them"
trains toy:rings -o timed --time 0.05s model.nf=8 model.num_res_blocks=1 train.batch=4 train.sample_nfe=2
grep -q "steps of 4 samples: .* samples/s on this machine" "$logs/err" || fail "does not say why: $(cat "$logs/err")"
cp timed/config.yaml timed.before
trains toy:rings -o timed --time 1h
cmp timed.before timed/config.yaml || fail "the same run has other steps now"
sed 's/  steps: .*/  steps: 1000000000/' timed.before >timed.yaml
trains timed.yaml --time 0.05s -o timed-config
steps=$(sed -n 's/^  steps: //p' timed-config/config.yaml)
[ "$steps" -ge 100 ] && [ "$steps" -lt 1000000 ] || fail "$steps steps in a twentieth of a second"
for time in 30 m -1h 1w nan; do
    refuses 2 "expected a time such as 90s, 30m, 2h or 1d" train toy:rings -o wrong --time $time
done

check "a classifier: accuracy against t in the log and as a plot; it continues, and guides"
cat >grey.yaml <<'EOF'
process: psld gamma=0.02
data: {size: 8, channels: 1}
model: {name: ncsnpp, nf: 8, ch_mult: [1], num_res_blocks: 1, attn_resolutions: []}
EOF
quietly convert grey.yaml grey.safetensors
mkdir classes
for class in cat dog; do
    quietly sample grey.safetensors -n 24 --nfe 2 -o classes/$class
    rm classes/$class/samples.json
done
small="model.nf=8 model.ch_mult=[1] model.num_res_blocks=1 model.attn_resolutions=[] train.batch=8 train.evaluate_every=2 data.held_out=0.25"
# shellcheck disable=SC2086
trains --classifier classes -o clf process="psld gamma=0.02" $small train.steps=3
[ -s clf/accuracy.png ] || fail "no accuracy.png"
trains -o clf train.steps=4
for set in loss held_out; do
    grep -q "\"${set}_accuracy_by_t\": \[" clf/log.jsonl || fail "no accuracy against t: $(cat clf/log.jsonl)"
done
[ ! -e whole/accuracy.png ] || fail "accuracy of what is no classifier"
quietly guide grey.safetensors --classifier clf --label dog -n 2 --nfe 3 -o dog.npy
refuses 2 'there is no class named "bird"' guide grey.safetensors --classifier clf --label bird -n 2 -o bird.npy
# shellcheck disable=SC2086
trains --classifier --clean classes -o judge process="psld gamma=0.02" $small train.steps=2

check "arrays of numbers are images of any channels, and patches of them places"
quietly sample grey.safetensors -n 8 --nfe 2 -o arrays.npy
trains arrays.npy -o arrays train.steps=2 train.batch=4 train.sample_every=0 model.nf=8 model.ch_mult=[1,1] model.patch=2 model.attn_resolutions=[]
quietly sample arrays -n 2 --nfe 2 -o again.npy
refuses 1 "patches of 3 x 3" train arrays.npy -o odd model.patch=3

check "data may move between two parts of a run; when they are more, it says so"
mv arrays.npy moved.npy
refuses 1 "arrays.npy" train -o arrays train.steps=3
trains -o arrays --data moved.npy train.steps=3
! grep -q "items now" "$logs/err" || fail "the same data are others: $(cat "$logs/err")"
quietly sample grey.safetensors -n 9 --nfe 2 -o more.npy
trains -o arrays --data more.npy train.steps=4
grep -q "more.npy: has 9 items now and had 8" "$logs/err" || fail "$(cat "$logs/err")"

check "going on needs no word of what the run knows"
trains -o arrays --data more.npy train.steps=5
refuses 1 "not of a classifier" train --classifier -o arrays train.steps=6

check "a model without checkpoints is not trained over"
cp -r whole lost
rm lost/checkpoints/*
refuses 1 "has no checkpoint to go on from" train -o lost train.steps=70
cmp lost/model.safetensors whole/model.safetensors && cmp lost/log.jsonl whole/log.jsonl || fail "something was lost"

check "a recipe in a file becomes part of the run"
cat >mine.yaml <<'EOF'
name: mine
D: [[0.1, 0], [0, 0.5]]
Q: [[0, -0.5], [0.5, 0]]
mass: [0.5]
EOF
trains small.yaml -o own process=mine.yaml train.steps=3
mv mine.yaml gone.yaml
quietly sample own -n 3 --nfe 3 -o y.npy
trains -o own train.steps=4

check "start from another model's weights"
trains small.yaml -o second --init whole train.steps=2
refuses 1 "another network" train small.yaml -o third --init whole model.nf=8

check "images of several sizes: the middle one is chosen, not the first; all are brought to it"
write_networks
quietly sample net.safetensors -n 1 --nfe 2 -o odd
sed "s/size: 8/size: 16/" net.yaml >net16.yaml
quietly convert net16.yaml net16.safetensors
quietly sample net16.safetensors -n 8 --nfe 2 -o sizes
mv odd/*.png sizes/000-thumb.png
trains sizes -o sized train.steps=3 model.nf=8 model.num_res_blocks=1 train.batch=9 data.held_out=0 train.sample_every=0
grep -q "size: 16" sized/config.yaml || fail "another size: $(grep size: sized/config.yaml)"

check "estimate: nothing is written"
listing >"$logs/before"
trains small.yaml --estimate --json
listing >"$logs/after"
cmp "$logs/before" "$logs/after" || fail "estimate left something behind"
json '.seconds_per_step > 0 and .bytes > 1000 and .steps == 60'

check "refusals"
refuses 2 "-o RUN" train small.yaml
refuses 1 "absent.yaml" train absent.yaml -o new
refuses 1 "unknown key \"stepz\"" train small.yaml -o new train.stepz=3
refuses 1 "train.lr" train small.yaml -o whole train.lr=7
refuses 1 "cannot" train small.yaml -o small.yaml/run
printf 'x' >file
refuses 1 "file" train small.yaml -o file
refuses 1 "images with classes" train --classifier toy:moons -o new
cp classes/dog/000000.png classes
refuses 1 "classes: item 1 of 49 has no class" train --classifier classes -o new process=vp
[ ! -e new ] || fail "a run was begun"
rm classes/000000.png
refuses 1 "fourier cannot embed time 0" train --classifier --clean classes -o new process=vp model.embedding_type=fourier
mkdir empty
refuses 1 "empty" train empty -o new

check "every key is listed, and the tables of the documentation are the same"
quietly train --keys
for words in "process  *recipe" "process.gamma  *number  *0.01" "model.nf  *whole number  *128" "seed  *whole number  *0" \
    "model.predicts  *word  *eps  *eps|data: eps, the noise" "train.lr  *number  *2e-4  *learning rate" "train.steps \*  *whole"; do
    grep -q "^$words" "$logs/out" || fail "--keys has no \"$words\""
done
quietly train --keys --json
json '(.keys | INDEX(.name)) as $k | ($k["train.loss"].choices | startswith("hsm|dsm")) and $k["model.nf"].default == "128"'
"$(dirname "$0")/../../tools/make-keys" "$psld" --check || fail "tables of keys in docs/"

check "what was perhaps meant"
refuses 1 'unknown key "stepz": did you mean "steps"? known are' train small.yaml -o new train.stepz=3
refuses 1 'unknown key "steps": did you mean "train.steps"?' train small.yaml -o new steps=3
refuses 1 'unknown key "nff": did you mean "nf"?' train small.yaml -o new model.nff=3
refuses 1 'found "mpl": did you mean "mlp"?' train small.yaml -o new model.name=mpl
refuses 1 'did you mean "cross_entropy"?' train small.yaml -o new train.loss=crossentropy
refuses 1 'did you mean "cld"?' train small.yaml -o new process=cdl
refuses 2 'did you mean "moons"?' train toy:mons -o new
refuses 2 "unknown option --process: did you mean process=...?" train small.yaml --process vp -o new
refuses 2 "unknown option --steps: did you mean train.steps=...?" train small.yaml --steps 3 -o new
refuses 2 "unknown option --estimat: did you mean --estimate?" train small.yaml --estimat
refuses 2 'no command "trian": did you mean "train"?' trian
refuses 2 'found "ancestrl": did you mean "ancestral"?' sample whole --sampler ancestrl -n 2 -o no.npy
refuses 2 'found "unform": did you mean "uniform"?' sample whole --grid unform -n 2 -o no.npy
refuses 2 'no class named "dogg": did you mean "dog"? there are cat, dog' guide grey.safetensors --classifier clf --label dogg -o no.npy

check "messages that suggest values"
sed 's/nf: 8/nf: 24/; s/ch_mult: \[1\]/ch_mult: [2, 4, 4]/' grey.yaml >wide.yaml
refuses 1 "model.nf: 24 makes 144 channels, which cannot be divided into 32 equal groups; use 20 or 32" info wide.yaml
refuses 1 "process is cld there and vp now; keep its value, or give another folder" train small.yaml -o whole process=vp
refuses 1 "process is cld there and {preset: vp, beta: 4} now" train small.yaml -o whole process="{preset: vp, beta: 4}"
refuses 1 "whole: is a score network; features come from a classifier" eval classes/cat classes/dog --weights whole

check "the folder of a classifier's run gives features"
"$psld" eval classes/cat classes/dog --weights clf --json >"$logs/out" || fail "eval --weights RUN"
json '.frechet_distance >= 0 and (has("fid") | not)'

check "numbers of a recipe are written with the digits they need; one mass is a list"
printf 'name: mine\nD: [[0.05, 0], [0, 0.1]]\nQ: [[0, -0.7], [0.7, 0]]\nmass: 0.25\ninit: 0.3\n' >mine.yaml
trains small.yaml -o digits process=mine.yaml train.steps=1
grep -q 'D: \[\[0.05, 0\], \[0, 0.1\]\]' digits/config.yaml || fail "$(grep D: digits/config.yaml)"
grep -q 'mass: \[0.25\]' digits/config.yaml || fail "$(grep mass: digits/config.yaml)"
# as earlier versions wrote it: the same numbers, the same run
sed -i 's/0\.05/0.050000000000000003/; s/0\.1/0.10000000000000001/; s/stabiliser: 1e-9/stabiliser: 1.0000000000000001e-09/' digits/config.yaml
grep -q 0.050000000000000003 digits/config.yaml || fail "nothing to compare"
trains small.yaml -o digits process=mine.yaml train.steps=2
