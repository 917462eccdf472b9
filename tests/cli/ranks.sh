#!/usr/bin/env bash
# Several ranks (mpirun): training takes the same steps, sampling makes the same bytes. Skipped where there is no MPI.
set -eu
. "$(dirname "$0")/lib.bash"
if ! command -v mpirun >/dev/null || ! ldd "$psld" | grep -q libmpi; then
    skip_all "no MPI"
fi
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1

# on_two ARGUMENTS: the program on two ranks of one thread each.
on_two() { timeout 120 mpirun -n 2 "$psld" "$@" --threads 1 >"$logs/out" 2>&1 || fail "two ranks: psld $*: $(cat "$logs/out")"; }

check "training: the same losses as one rank but for rounding"
cat >small.yaml <<'EOF'
process: cld
data: {path: "toy:moons", channels: 2}
model: {name: mlp, nf: 16, num_res_blocks: 1}
train: {batch: 16, steps: 40, lr: 1e-3, warmup: 5, ema: 0.9, checkpoint_every: 17, sample_every: 0, evaluate_every: 20,
        evaluate_count: 16}
EOF
"$psld" train small.yaml -o one 2>"$logs/err" || fail "$(cat "$logs/err")"
on_two train small.yaml -o two train.accumulate=3
[ "$(wc -l <two/log.jsonl)" -eq 40 ] || fail "two ranks: not a line a step"
losses() { sed 's/.*"loss": \([^,]*\),.*/\1/' "$1/log.jsonl"; }
paste -d' ' <(losses one) <(losses two) |
    awk '{ d = $1 / $2 - 1; if (d < -1e-4 || d > 1e-4) { print "loss " $1 " and " $2; bad = 1 } } END { exit bad }' ||
    fail "other losses on two ranks"

check "gradients sent as bf16: losses within 1e-3, and not the same"
on_two train small.yaml -o two-fp32
on_two train small.yaml -o two-bf16 train.reduce_precision=bf16
paste -d' ' <(losses one) <(losses two-bf16) |
    awk '{ d = $1 / $2 - 1; if (d < -1e-3 || d > 1e-3) { print "loss " $1 " and " $2; bad = 1 } } END { exit bad }' ||
    fail "other losses with bf16"
! cmp -s <(losses two-fp32) <(losses two-bf16) || fail "train.reduce_precision=bf16 does nothing"

check "a run continues with the other precision; another word is refused"
on_two train -o two-bf16 train.steps=42 train.reduce_precision=fp32
[ "$(wc -l <two-bf16/log.jsonl)" -eq 42 ] || fail "did not go on"
refuses 1 "expected fp32 or bf16" train small.yaml -o refused train.reduce_precision=fp16

check "a learned recipe: the same except for rounding; it continues with one rank"
learn=(train.loss=elbo "process.learn=[D,Q,beta]" train.steps=12)
"$psld" train small.yaml -o learn-one "${learn[@]}" 2>"$logs/err" || fail "$(cat "$logs/err")"
on_two train small.yaml -o learn-two "${learn[@]}" train.steps=7 train.accumulate=3
"$psld" train -o learn-two train.steps=12 2>"$logs/err" || fail "$(cat "$logs/err")"
paste -d' ' <("$psld" info learn-one --recipe | tr -c '0-9.e-' '\n' | grep '[0-9]') \
    <("$psld" info learn-two --recipe | tr -c '0-9.e-' '\n' | grep '[0-9]') |
    awk '{ d = $1 - $2; if (d < -1e-4 || d > 1e-4) { print $1 " and " $2; bad = 1 } } END { exit bad || NR < 8 }' ||
    fail "another recipe on two ranks"

check "a run begun by one rank continues with two"
"$psld" train small.yaml -o mixed train.steps=17 2>"$logs/err" || fail "$(cat "$logs/err")"
on_two train -o mixed train.steps=20
[ "$(wc -l <mixed/log.jsonl)" -eq 20 ] || fail "did not go on"

check "points: the same bytes for every sampler"
for how in "--sampler em --nfe 5" "--sampler ode --tol 1e-2 --ode-group 4" ""; do
    quietly sample one -n 19 $how -o a.npy
    on_two sample one -n 19 $how -o b.npy
    cmp a.npy b.npy || fail "other points on two ranks: $how"
done

check "pictures into a folder, an array and a grid: the same bytes"
write_networks
for how in "--sampler sscs --nfe 3" "--sampler ode --tol 0.3 --ode-group 4"; do
    rm -rf a b
    for out in "" .npy .png; do
        quietly sample net.safetensors -n 11 $how -o "a$out"
        on_two sample net.safetensors -n 11 $how -o "b$out"
        says "11 samples of"
    done
    diff -r a b || fail "other pictures on two ranks: $how"
    [ "$(find b -name '*.png' | wc -l)" -eq 11 ] || fail "not 11 pictures"
    cmp a.npy b.npy || fail "another array on two ranks: $how"
    cmp a.png b.png || fail "another grid on two ranks: $how"
done

check "a folder begun by one rank is finished by two, and the other way round"
rm -rf c d
quietly sample net.safetensors -n 3 --sampler sscs --nfe 3 -o c
on_two sample net.safetensors -n 11 --sampler sscs --nfe 3 -o c
on_two sample net.safetensors -n 5 --sampler sscs --nfe 3 -o d
quietly sample net.safetensors -n 11 --sampler sscs --nfe 3 -o d
diff -r c d || fail "c and d differ"

# waits_for_steps RUN: until its log has some lines.
waits_for_steps() {
    local i
    for i in $(seq 1200); do
        [ "$(wc -l 2>/dev/null <"$1/log.jsonl" || echo 0)" -lt 3 ] || return 0
        sleep 0.05
    done
    fail "$1 never begins"
}
# saved_last RUN: its only checkpoint is of the last step in its log.
saved_last() {
    [ "$(ls "$1/checkpoints")" = "$(printf 'step-%09d.safetensors' "$(wc -l <"$1/log.jsonl")")" ] ||
        fail "$1: $(wc -l <"$1/log.jsonl") steps, $(ls "$1/checkpoints")"
}
endless="train.steps=1000000 train.checkpoint_every=0 train.checkpoint_minutes=0"

check "psld stop ends all ranks after a step, with a checkpoint"
# shellcheck disable=SC2086
timeout 120 mpirun -n 2 "$psld" train small.yaml -o asked $endless --threads 1 >"$logs/train" 2>&1 &
pid=$!
waits_for_steps asked
"$psld" stop asked >"$logs/out" 2>"$logs/err" || fail "psld stop: $(cat "$logs/err")"
wait $pid || true
saved_last asked
[ ! -e asked/stop ] || fail "the file stop is left"

check "data that one of the ranks cannot read: a checkpoint first, then all end"
quietly sample one -n 64 --nfe 2 -o points.npy
# shellcheck disable=SC2086
timeout 120 mpirun -n 2 "$psld" train small.yaml --data points.npy -o lost $endless --threads 1 >"$logs/train" 2>&1 &
pid=$!
waits_for_steps lost
truncate -s 300 points.npy
code=0
wait $pid || code=$?
[ $code -ne 0 ] && [ $code -ne 124 ] || fail "exit code $code: $(cat "$logs/train")"
grep -q "become shorter" "$logs/train" || fail "$(cat "$logs/train")"
saved_last lost
