#!/usr/bin/env bash
# What a run outlives: closed pipes and terminals, limits, damaged files, data that go away; and how it is stopped.
set -eu
. "$(dirname "$0")/lib.bash"

cat >small.yaml <<'END'
process: cld
data: {path: "toy:moons", channels: 2}
model: {name: mlp, nf: 16, num_res_blocks: 1}
train: {batch: 16, steps: 60, lr: 1e-3, warmup: 5, ema: 0.9, checkpoint_every: 20, sample_every: 0, evaluate_every: 20,
        evaluate_count: 16}
END
endless="train.steps=1000000 train.checkpoint_every=0 train.checkpoint_minutes=0"

# trains ARGUMENTS: must succeed; what it says on stderr is progress.
trains() { "$psld" train "$@" >"$logs/out" 2>"$logs/err" || fail "psld train $*: $(cat "$logs/err")"; }

# waits_for COMMAND...: until it succeeds, for a minute at most.
waits_for() {
    local i
    for i in $(seq 1200); do
        if "$@" 2>/dev/null; then return; fi
        sleep 0.05
    done
    fail "never: $*"
}
has_lines() { [ "$(wc -l <"$1")" -ge "$2" ]; }

# saved_last RUN: its only checkpoint is of the last step in its log.
saved_last() {
    local last
    last=$(printf 'step-%09d.safetensors' "$(wc -l <"$1/log.jsonl")")
    [ "$(ls "$1/checkpoints")" = "$last" ] || fail "$1: expected $last, found: $(ls "$1/checkpoints")"
}

check "a pipe that is closed: the step is finished, a checkpoint written"
# shellcheck disable=SC2086
# shellcheck disable=SC2086
{ "$psld" train small.yaml -o piped $endless 2>&1 || echo $? >"$logs/code"; } | head -n 1 >/dev/null
[ "$(cat "$logs/code")" -eq 141 ] || fail "exit code $(cat "$logs/code")"
saved_last piped

check "Ctrl-C on psld train | tee"
# shellcheck disable=SC2086
setsid env --default-signal=INT bash -c '"$0" train small.yaml -o teed "$@" 2>&1 | tee tee.log' "$psld" $endless &
group=$!
waits_for has_lines teed/log.jsonl 3
kill -INT -- -$group
wait $group || true
has_checkpoint() { ls "$1"/checkpoints/*.safetensors >/dev/null; }
waits_for has_checkpoint teed
saved_last teed

check "a hang-up that is ignored stays ignored"
# shellcheck disable=SC2086
nohup "$psld" train small.yaml -o nohup $endless >/dev/null 2>&1 &
pid=$!
waits_for has_lines nohup/log.jsonl 3
kill -HUP $pid
waits_for has_lines nohup/log.jsonl $(($(wc -l <nohup/log.jsonl) + 100))
kill -TERM $pid
wait $pid || true
saved_last nohup

check "other commands: a reader that goes away is no reason to complain"
{ "$psld" sample piped -n 4 --nfe 2 -o kept.npy --json 2>"$logs/err" || true; } | true
[ -s kept.npy ] && [ ! -s "$logs/err" ] || fail "sample into a closed pipe: $(cat "$logs/err")"

check "a limit on the size of files is said, and the last checkpoint stays"
trains small.yaml -o limited train.steps=20
code=0
(ulimit -f 8 && exec "$psld" train -o limited train.steps=1000) >"$logs/out" 2>"$logs/err" || code=$?
[ $code -eq 1 ] || fail "exit code $code: $(cat "$logs/err")"
grep -q "File too large" "$logs/err" || fail "$(cat "$logs/err")"
trains -o limited train.steps=22

check "a damaged checkpoint is set aside: it does not count among those that are kept"
trains small.yaml -o damaged train.steps=40
printf 'damage' | dd of=damaged/checkpoints/step-000000040.safetensors bs=1 seek=9000 conv=notrunc status=none
trains -o damaged train.steps=30 train.keep=1
grep -q "step-000000040.safetensors: is damaged" "$logs/err" || fail "$(cat "$logs/err")"
[ "$(ls damaged/checkpoints)" = "step-000000030.safetensors
step-000000040.safetensors.damaged" ] || fail "checkpoints: $(ls damaged/checkpoints)"
trains -o damaged train.steps=60 train.keep=2
trains small.yaml -o whole
cmp damaged/model.safetensors whole/model.safetensors || fail "another model after going back"

check "a run continues with its checkpoint, not with config.yaml"
trains small.yaml -o edited train.steps=20
sed -i 's/lr: 1e-3/lr: 0.09/' edited/config.yaml
refuses 1 "checkpoints/step-000000020.safetensors: belongs to another configuration: train.lr is 1e-3 there and 0.09 now" \
    train -o edited train.steps=60
sed -i -e 's/lr: 0.09/lr: 1e-3/' -e 's/steps: 20$/steps: 23/' edited/config.yaml
trains -o edited
[ "$(wc -l <edited/log.jsonl)" -eq 23 ] || fail "what may change was not taken from config.yaml"

check "a damaged line of the log costs that line alone"
trains small.yaml -o logged train.steps=40
sed -i -e '5s/.*/{"step": 5, "loss": 1.0, #/' -e '9s/"/\x00/' logged/log.jsonl
trains -o logged
grep -q "logged/log.jsonl: left out 2 damaged lines, the first is line 5" "$logs/err" || fail "$(cat "$logs/err")"
[ "$(wc -l <logged/log.jsonl)" -eq 38 ] || fail "$(wc -l <logged/log.jsonl) lines, expected 38"
cmp <(sed -e 5d -e 9d -e 41,60d whole/log.jsonl | cut -d, -f1-4) <(cut -d, -f1-4 logged/log.jsonl) || fail "another log"

check "psld stop: a checkpoint, and how to go on; refused where nothing trains"
refuses 1 "no training run" stop empty
refuses 2 "expected one folder" stop
refuses 1 "nothing is training" stop whole
# shellcheck disable=SC2086
"$psld" train small.yaml -o asked $endless 2>"$logs/train" &
pid=$!
waits_for has_lines asked/log.jsonl 3
"$psld" stop asked >"$logs/out" 2>"$logs/err" || fail "psld stop: $(cat "$logs/err")"
says "psld train -o asked continues"
code=0
wait $pid || code=$?
[ $code -eq 143 ] || fail "exit code $code of a run that was asked to stop"
grep -q "psld train -o asked" "$logs/train" || fail "$(cat "$logs/train")"
[ ! -e asked/stop ] || fail "the file stop is left"
saved_last asked

check "a file stop that was left is removed and stops nothing"
touch whole/stop
code=0
"$psld" stop whole >"$logs/out" 2>"$logs/err" || code=$?
[ $code -eq 1 ] && [ ! -e whole/stop ] || fail "code $code, $(ls whole)"
touch asked/stop
trains -o asked train.steps=$(($(wc -l <asked/log.jsonl) + 5))
[ ! -e asked/stop ] || fail "the file stop is left"

check "checkpoints by time: the same run"
trains small.yaml -o timed train.checkpoint_every=0 train.checkpoint_minutes=1e-9 train.keep=100
[ "$(ls timed/checkpoints | wc -l)" -eq 60 ] || fail "$(ls timed/checkpoints | wc -l) checkpoints by time, expected 60"
cmp <(cut -d, -f1-4 whole/log.jsonl) <(cut -d, -f1-4 timed/log.jsonl) || fail "another log with checkpoints by time"
quietly sample timed -n 4 --nfe 3 -o timed.npy
quietly sample whole -n 4 --nfe 3 -o whole.npy
cmp timed.npy whole.npy || fail "another model with checkpoints by time"

check "data that become shorter: the run ends with a checkpoint and the reason; it continues when they are back"
quietly sample whole -n 64 --nfe 2 -o points.npy
cp points.npy copy.npy
# shellcheck disable=SC2086
"$psld" train small.yaml --data points.npy -o lost $endless 2>"$logs/train" &
pid=$!
waits_for has_lines lost/log.jsonl 3
truncate -s 300 points.npy
code=0
wait $pid || code=$?
[ $code -eq 1 ] || fail "exit code $code after data became shorter: $(cat "$logs/train")"
grep -q "points.npy: cannot read: it has become shorter since it was opened; stopped after step .*, with a checkpoint" \
    "$logs/train" || fail "$(cat "$logs/train")"
saved_last lost
cp copy.npy points.npy
trains -o lost train.steps=$(($(wc -l <lost/log.jsonl) + 3))

check "more broken images than data.skip_limit: the run stops and reports them"
write_networks
quietly sample net.safetensors -n 8 --nfe 2 -o pictures
rm pictures/samples.json
for i in 2 3 5; do printf 'broken' | dd of=pictures/00000$i.png bs=1 seek=45 conv=notrunc status=none; done
net="train.steps=2 train.batch=8 train.sample_every=0 data.held_out=0"
code=0
# shellcheck disable=SC2086
"$psld" train net.yaml --data pictures -o skipping $net >"$logs/out" 2>"$logs/err" || code=$?
[ $code -eq 1 ] || fail "exit code $code with broken images: $(cat "$logs/err")"
grep -q "pictures: [23] of 8 images are broken, more than data.skip_limit = 0.05 allows" "$logs/err" || fail "$(cat "$logs/err")"
# shellcheck disable=SC2086
trains net.yaml --data pictures -o skipped $net data.skip_limit=0.3
code=0
# shellcheck disable=SC2086
"$psld" train net.yaml --data pictures -o strict $net data.skip_limit=0 >"$logs/out" 2>"$logs/err" || code=$?
[ $code -eq 1 ] && ! grep -q "skipped" "$logs/err" || fail "data.skip_limit=0: $(cat "$logs/err")"

check "a lost terminal ends sampling, which keeps its samples and reports their number"
"$psld" sample net.safetensors -n 1000000 --nfe 2 --batch 1 -o drawn >"$logs/out" 2>"$logs/err" &
pid=$!
waits_for test -e drawn/000002.png
kill -HUP $pid
code=0
wait $pid || code=$?
[ $code -ne 0 ] && [ $code -ne 129 ] || fail "exit code $code"
[ -s "$logs/err" ] || fail "no word after SIGHUP"
[ -s drawn/000001.png ] && [ -z "$(find drawn -name '*.tmp')" ] || fail "in the folder: $(ls -A drawn | head -5)"

check "a model file that becomes shorter while it is used is an error with a message"
quietly sample net.safetensors -n 2 --nfe 2 --state -o state.npy
sed 's/nf: 8/nf: 64/' net.yaml >large.yaml # so large that weights are used where they lie
quietly convert large.yaml shrinks.safetensors
mkfifo start.npy
"$psld" sample shrinks.safetensors --z0 start.npy --nfe 2 -o shrunk.npy >"$logs/out" 2>"$logs/err" &
pid=$!
exec 3>start.npy # waits until it is read, which is when the model is open
truncate -s 0 shrinks.safetensors
cat state.npy >&3
exec 3>&-
code=0
wait $pid || code=$?
[ $code -eq 1 ] || fail "exit code $code of a model file that became shorter: $(cat "$logs/err")"
grep -q "^psld: a file became shorter" "$logs/err" || fail "$(cat "$logs/err")"
