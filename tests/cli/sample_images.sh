#!/usr/bin/env bash
# psld sample on networks that draw pictures: grids, folders, arrays; the same bits whatever the batch, the threads and
# the output; stopping and going on; strips of what the model believes; estimates.
set -eu
. "$(dirname "$0")/lib.bash"

network() { # NAME CHANNELS PROCESS
    cat >"$1.yaml" <<YAML
process: $3
data: {size: 8, channels: $2}
model: {name: ncsnpp, nf: 8, ch_mult: [1, 2], num_res_blocks: 1, attn_resolutions: [4]}
YAML
    quietly convert "$1.yaml" "$1.safetensors"
}
network grey 1 "psld gamma=0.02"
network colour 3 cld
budget() { [ "$1" = ode ] && echo "--tol 0.1 --ode-group 3" || echo "--nfe 5"; }

is_png() { # FILE WIDTH HEIGHT
    [ "$(head -c 8 "$1" | od -An -tx1 | tr -d ' \n')" = 89504e470d0a1a0a ] || fail "$1 is no PNG"
    local size
    size=$(od -An -tu1 -j16 -N8 "$1" | tr -s ' ')
    [ -z "${2-}" ] || [ "$size" = " 0 0 0 $2 0 0 0 $3" ] || fail "$1: size$size, expected $2 x $3"
}

check "the same bits for every batch and number of threads, every sampler, grey and colour"
samplers=$("$psld" sample --choices --sampler | grep -vx consistency) # for tuned models: tune.sh has it
[ "$(wc -l <<<"$samplers")" -ge 5 ] || fail "samplers: $samplers"
for model in grey colour; do
    for sampler in $samplers; do
        for how in "--batch 1 --threads 1" "--batch 4 --threads 2" "--batch 1000"; do
            # shellcheck disable=SC2046,SC2086
            quietly sample $model.safetensors --sampler "$sampler" $(budget "$sampler") $how -n 7 --seed 5 -o now.npy
            [ -e "$model-$sampler.npy" ] || cp now.npy "$model-$sampler.npy"
            cmp now.npy "$model-$sampler.npy" || fail "$model $sampler $how: other bits"
        done
    done
done

check "guided by a weaker model, in a file of its own or in that of the model"
quietly convert grey.yaml weak.safetensors model.nf=16
quietly convert grey.safetensors both.safetensors --weak weak.safetensors --weak-scale 2
quietly sample grey.safetensors --weak weak.safetensors --weak-scale 2 --nfe 5 -n 3 -o two.npy
for how in "--batch 1 --threads 1" "--batch 1000"; do
    # shellcheck disable=SC2086
    quietly sample both.safetensors $how --nfe 5 -n 3 -o one.npy
    cmp one.npy two.npy || fail "one file for both: other bits"
done
quietly sample both.safetensors --nfe 5 -n 3 -o one.npy --json
json '.weak_scale == 2'
quietly sample both.safetensors --weak none --nfe 5 -n 3 -o alone.npy
quietly sample grey.safetensors --nfe 5 -n 3 -o plain.npy
cmp alone.npy plain.npy || fail "--weak none: not the model alone"
quietly sample both.safetensors --process vp --nfe 5 -n 3 -o vp.npy
# told has less noise at t = 1e-3 than the network was trained for
for sampler in em sscs dpm heun; do
    quietly sample both.safetensors --process told --sampler $sampler --nfe 5 -n 1 -o told.npy
done
quietly sample both.safetensors --process told --sampler ode --tol 1e-2 -n 1 -o told.npy
refuses 2 "valid at times from" sample both.safetensors --process told --sampler em --eps 1e-3 --nfe 5 -n 1 -o no.npy
quietly encode both.safetensors plain.npy --nfe 5 -o states.npy
refuses 1 "weak.pt" sample grey.safetensors --weak weak.pt -n 3 -o none.npy
refuses 1 "colour.safetensors: the weak model and the model have data of different shapes" sample grey.safetensors --weak colour.safetensors -n 3 -o none.npy
[ ! -e none.npy ] || fail "refused, and written"
rm both.safetensors weak.safetensors

check "a grid"
quietly sample colour.safetensors --nfe 4 -n 9 -o grid.png
says "9 samples of 3 x 8 x 8, 4 evaluations each"
is_png grid.png
quietly sample grey.safetensors --nfe 4 -o default.png --json
says '"n": 64'

check ".npz has pixels, [n, h, w, c], as rounded and cut off from .npy"
for how in round floor; do
    quietly sample colour.safetensors --nfe 4 -n 3 -o pixels-$how.npz --quantize $how
done
quietly sample colour.safetensors --nfe 4 -n 3 -o x.npy
quietly sample colour.safetensors --nfe 4 -n 3 --state -o state.npz
if python3 -c 'import numpy' 2>/dev/null; then
    python3 - <<'PY' || fail "the pixels are not those of the numbers"
import numpy as np
x = np.load('x.npy').astype(np.float64)
assert x.shape == (3, 3, 8, 8)
scaled = np.clip((x + 1) * 127.5, 0, 255).transpose(0, 2, 3, 1)
for how, f in ('round', np.rint), ('floor', np.floor):
    p = np.load(f'pixels-{how}.npz')['arr_0']
    assert p.dtype == np.uint8 and p.shape == (3, 8, 8, 3)
    assert np.abs(f(scaled) - p).max() <= (np.abs(scaled - np.rint(scaled)) < 1e-4).any()
z = np.load('state.npz')['arr_0']
assert z.dtype == np.float32 and z.shape == (3, 6, 8, 8)
assert (z[:, :3] == np.load('x.npy')).all()
PY
else
    skip_part "pixels against numbers: no NumPy to read them with"
fi

check "a folder: named by number, the same for every batch"
quietly sample grey.safetensors --nfe 4 -n 11 -o many
[ "$(cd many && echo *.png)" = "$(seq -f '%06g.png' 0 10 | tr '\n' ' ' | sed 's/ $//')" ] || fail "names: $(ls many)"
is_png many/000010.png 8 8
quietly sample grey.safetensors --nfe 4 -n 11 --batch 2 -o few/
diff -r many few || fail "pictures depend on the batch"
[ "$(find many -name '.*' -type f | wc -l)" -eq 0 ] || fail "temporary files are left"

check "a folder: continues where it stopped, and grows"
rm few/000003.png few/000004.png few/000009.png
before=$(stat -c '%y' few/000000.png)
quietly sample grey.safetensors --nfe 4 -n 11 -o few
diff -r many few || fail "other pictures after going on"
[ "$before" = "$(stat -c '%y' few/000000.png)" ] || fail "what was there was drawn again"
quietly sample grey.safetensors --nfe 4 -n 11 -o few
says "few has them all"
quietly sample grey.safetensors --nfe 4 -n 13 -o few
quietly sample grey.safetensors --nfe 4 -n 13 -o new
diff -r new few || fail "a folder that grew is another"

check "a folder, with samples that step together"
quietly sample grey.safetensors --sampler ode --tol 0.1 --ode-group 4 -n 10 -o ode-whole
quietly sample grey.safetensors --sampler ode --tol 0.1 --ode-group 4 -n 10 -o ode-part
rm ode-part/000002.png ode-part/000006.png ode-part/000007.png
quietly sample grey.safetensors --sampler ode --tol 0.1 --ode-group 4 -n 10 -o ode-part
diff -r ode-whole ode-part || fail "other pictures after going on"

check "a folder of something else is refused"
refuses 1 "few: has samples with other settings (seed" sample grey.safetensors --nfe 4 -n 11 --seed 1 -o few
refuses 1 "few: has samples with other settings (nfe" sample grey.safetensors --nfe 5 -n 11 -o few
refuses 1 "few: has samples with other settings (sampler" sample grey.safetensors --sampler sscs --nfe 4 -n 11 -o few
refuses 1 "few: has samples with other settings (quantize" sample grey.safetensors --nfe 4 -n 11 --quantize floor -o few
refuses 1 "few: has samples with other settings (model" sample colour.safetensors --nfe 4 -n 11 -o few
mkdir other empty
echo text >other/file
touch empty/.samples.json.tmp # as a process leaves it that was killed at its very beginning
refuses 1 "other: has files but no samples.json" sample grey.safetensors --nfe 4 -n 2 -o other
quietly sample grey.safetensors --nfe 4 -n 2 -o empty
echo "{" >empty/samples.json
refuses 1 "empty/samples.json: line" sample grey.safetensors --nfe 4 -n 2 -o empty
echo "[]" >empty/samples.json
refuses 1 "empty/samples.json: expected an object" sample grey.safetensors --nfe 4 -n 2 -o empty

check "stopped by a signal: drawn samples are kept, and the same command continues"
stop() { # OUT: starts sampling, stops it when something can be there
    local code=0
    "$psld" sample grey.safetensors --nfe 150 -n 60 --batch 4 --threads 1 -o "$1" >"$logs/out" 2>"$logs/err" &
    local pid=$!
    for _ in $(seq 300); do
        [ -e "${2:-/nonexistent}" ] && break
        kill -0 $pid 2>/dev/null || break
        sleep 0.02
    done
    kill -INT $pid 2>/dev/null || true
    wait $pid || code=$?
    return $code
}
code=0
stop part part/000003.png || code=$?
[ $code -eq 1 ] || fail "exit code $code: $(cat "$logs/err")"
grep -q "^psld: interrupted: part has [0-9]* of 60 samples; run the same command to continue$" "$logs/err" || fail "$(cat "$logs/err")"
have=$(find part -name '*.png' | wc -l)
if [ "$have" -lt 4 ] || [ "$have" -ge 60 ]; then fail "$have pictures"; fi
quietly sample grey.safetensors --nfe 150 -n $((have + 2)) -o part
quietly sample grey.safetensors --nfe 150 -n $((have + 2)) -o whole
diff -r part whole || fail "other pictures after an interruption"

check "killed: no incomplete pictures, and the same command continues"
for _ in 1 2 3; do
    "$psld" sample grey.safetensors --nfe 40 -n 40 --batch 2 -o killed >"$logs/out" 2>"$logs/err" &
    pid=$!
    sleep 0.1
    kill -KILL $pid 2>/dev/null || true
    wait $pid 2>/dev/null || true
done
quietly sample grey.safetensors --nfe 40 -n 40 -o killed
quietly sample grey.safetensors --nfe 40 -n 40 -o unkilled
diff -r -x '.psld-*.tmp' killed unkilled || fail "other pictures after being killed"

check "--trajectory"
quietly sample colour.safetensors --nfe 20 -n 3 -o t.png --trajectory strips.png
is_png strips.png
quietly sample colour.safetensors --nfe 20 -n 3 -o u.png
cmp t.png u.png || fail "watching changes the samples"
quietly sample colour.safetensors --nfe 20 -n 3 --batch 1 --threads 1 -o u.png --trajectory again.png
cmp strips.png again.png || fail "strips depend on the batch"

check "--estimate writes nothing"
mkdir quiet && cd quiet
quietly sample ../grey.safetensors -n 50000 --batch 64 --estimate
says "50000 samples, 30 evaluations each"
quietly sample ../grey.safetensors -n 50000 --batch 64 --nfe 100 --estimate --json -o x
json '.n == 50000 and .nfe == 100 and .seconds > 0 and .peak_bytes > 1e6'
quietly sample ../grey.safetensors -n 5 --sampler ode --tol 0.1 --estimate --json
json '.nfe > 5 and (.seconds - 5 * .nfe * .seconds_per_evaluation | fabs) < 1e-9'
[ -z "$(ls -A)" ] || fail "left behind: $(ls -A)"
cd ..

check "the folder of a run is a model"
mkdir run
cp grey.safetensors run/model.safetensors
quietly sample run --nfe 4 -n 3 -o a.npy
quietly sample grey.safetensors --nfe 4 -n 3 -o b.npy
cmp a.npy b.npy || fail "a run draws something else than its model"
refuses 1 "run/checkpoints: has no checkpoint" sample run --use raw --nfe 4 -n 3 -o x.npy
mkdir run/checkpoints bare
cp colour.safetensors run/checkpoints/step-000000100.safetensors
cp grey.safetensors run/checkpoints/step-000000020.safetensors
quietly sample run --use raw --nfe 4 -n 3 -o a.npy
quietly sample colour.safetensors --nfe 4 -n 3 -o b.npy
cmp a.npy b.npy || fail "--use raw is not of the newest checkpoint"
refuses 1 "bare: expected a training run, found a folder without model.safetensors" sample bare --nfe 4 -n 3 -o x.npy

check "what pictures are refused"
refuses 2 "pictures are written as .png" sample grey.safetensors --nfe 4 -n 3 -o x.svg
refuses 2 "--state: states are written as .npy or .npz" sample grey.safetensors --nfe 4 -n 3 --state -o x.png
refuses 2 "--trajectory: expected a name that ends in .png" sample grey.safetensors --nfe 4 -o x.png --trajectory y.gif
refuses 1 "absent/y.png: cannot write" sample grey.safetensors --nfe 4 -o x.png --trajectory absent/y.png
refuses 2 "--trajectory goes with one file" sample grey.safetensors --nfe 4 -o new --trajectory y.png
refuses 2 "--quantize: expected round|floor" sample grey.safetensors --nfe 4 -o x.png --quantize up
write_mixture m.yaml
refuses 2 "--trajectory draws pictures" sample m.yaml --nfe 4 -o x.png --trajectory y.png
refuses 2 "a folder is for models of images" sample m.yaml --nfe 4 -o folder
