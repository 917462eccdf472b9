#!/usr/bin/env bash
# Devices: what is listed, chosen and refused; networks on an OpenCL device beside the CPU; faults of libraries, drivers and
# devices, which tests/device/faulty_opencl.c makes. What needs a device is skipped where there is none.
# shellcheck disable=SC2086 # options are words
set -eu
. "$(dirname "$0")/lib.bash"

write_networks

# trains ARGUMENTS: must succeed; what it says on stderr is progress.
trains() { "$psld" train "$@" >"$logs/out" 2>"$logs/err" || fail "psld train $*: $(cat "$logs/err")"; }

# loses CODE TEXT ARGUMENTS: a run that fails: the exit code, and the last line on stderr, which has the text.
loses() {
    local wanted=$1 text=$2 code=0
    shift 2
    "$psld" "$@" >"$logs/out" 2>"$logs/err" || code=$?
    [ "$code" -eq "$wanted" ] || fail "psld $*: exit code $code, expected $wanted: $(cat "$logs/err")"
    [ "$(grep -c '^psld: ' "$logs/err")" -eq 1 ] || fail "psld $*: not one line: $(cat "$logs/err")"
    tail -n 1 "$logs/err" | grep -qF -- "$text" || fail "psld $*: no \"$text\" in: $(cat "$logs/err")"
}

# Drawn digits, and a network of 8 x 8 pixels that was trained on them a little: an untrained one says 0.
quietly sample "$(dirname "$0")/../../models/digits.safetensors" -n 12 --nfe 5 -o digits
rm -f digits/*.json
trains net.yaml --data digits data.size=8 train.batch=8 train.steps=40 train.lr=5e-3 train.warmup=5 train.ema=0.5 \
    train.sample_every=0 train.evaluate_every=0 -o tiny --device cpu

draw="sample tiny -n 5 --nfe 3 -o"

check "the CPU is always there, and is taken where there is no GPU"
quietly devices --json
json '.devices[0] | .id == "cpu" and .kind == "cpu" and .memory > 0 and .units > 0'
quietly devices
says "cpu"
quietly $draw cpu.npy --device cpu
quietly $draw default.npy
cmp cpu.npy default.npy || fail "another device than the CPU was taken"
quietly bench net tiny --device cpu --json
json '.device == "cpu"'

check "names that are none"
refuses 2 "expected cpu, gpu or opencl:N, found 'tpu'" $draw x.npy --device tpu
refuses 2 "expected a number after opencl:" $draw x.npy --device opencl:
refuses 1 "there is no" $draw x.npy --device opencl:99
refuses 1 "opencl:99" train toy:moons -o x --device opencl:99
refuses 1 "opencl:99" serve --device opencl:99

# A build without OpenCL says so.
if "$psld" devices | grep -q 'this build has no OpenCL'; then skip_part "OpenCL: this build has none" && exit; fi

check "no OpenCL library, or no driver: one line, and the CPU works"
none() { env PSLD_OPENCL=/nowhere/libOpenCL.so.1 "$psld" "$@"; }
none devices | grep -qF "no OpenCL library (/nowhere/libOpenCL.so.1)" || fail "$(none devices)"
export PSLD_OPENCL=/nowhere/libOpenCL.so.1
refuses 1 "device gpu: no OpenCL library (/nowhere/libOpenCL.so.1); there is cpu" $draw x.npy --device gpu
refuses 1 "device opencl:0: no OpenCL library" $draw x.npy --device opencl:0
refuses 1 "device opencl:0: no OpenCL library" train toy:moons -o x --device opencl:0
quietly $draw x.npy
cmp cpu.npy x.npy || fail "the CPU draws others"
unset PSLD_OPENCL
mkdir vendors
OCL_ICD_VENDORS=$PWD/vendors refuses 1 "there is cpu" $draw x.npy --device gpu
OCL_ICD_VENDORS=$PWD/vendors quietly $draw x.npy
cmp cpu.npy x.npy || fail "the CPU draws others"

if ! "$psld" devices --json | jq -e '.devices | any(.id == "opencl:0")' >/dev/null; then
    skip_part "networks on a device: there is none ($("$psld" devices | tail -n 1))"
    exit
fi
if ! "$psld" $draw x.npy --device opencl:0 >/dev/null 2>&1; then
    skip_part "networks on a device: it has no kernels"
    exit
fi

# close A B TOLERANCE: arrays of float32 of the same shape, within the tolerance of the range of A.
close() {
    local n=$((($(wc -c <"$1") - 128) / 4))
    paste <(floats "$1" $n) <(floats "$2" $n) | awk -v tolerance="$3" '
        { if (NR == 1 || $1 < low) low = $1; if (NR == 1 || $1 > high) high = $1
          d = $1 - $2; if (d < 0) d = -d; if (d > worst || d != d) worst = d }
        END { printf "%g of the range\n", worst / (high - low); exit !(NF == 2 && worst <= tolerance * (high - low)) }'
}

device="--device opencl:0"
check "samples after 30 evaluations: those of the CPU to a thousandth of the range"
for sampler in sscs ode heun; do
    how="sample tiny -n 4 --sampler $sampler --nfe 30 --seed 2"
    [ $sampler != ode ] || how="sample tiny -n 4 --sampler ode --tol 1e-3 --seed 2"
    quietly $how -o here.npy --device cpu
    quietly $how -o there.npy $device
    close here.npy there.npy 1e-3 || fail "$sampler: others than the CPU's"
    ! cmp -s here.npy there.npy || fail "$sampler: the CPU's bits: was the device used?"
done

check "the same bits twice, and for any batch"
quietly sample tiny -n 7 --nfe 5 -o a.npy $device
for batch in 1 3 7; do
    quietly sample tiny -n 7 --nfe 5 -o b.npy $device --batch $batch
    cmp a.npy b.npy || fail "other samples with a batch of $batch"
done

check "guide, inpaint, restore, encode, interpolate and bench"
quietly sample tiny -n 2 --nfe 3 -o pictures
rm -f pictures/*.json
guided="guide tiny --classifier c.safetensors --label 1 -n 2 --nfe 3"
quietly $guided -o here.npy
quietly $guided -o there.npy $device
close here.npy there.npy 1e-3 || fail "guide"
for how in "inpaint tiny --image pictures --rect 0,4,8,4 -n 1 --nfe 3" \
    "restore tiny --image pictures --task denoise --noise 0.2 -n 1 --nfe 3" \
    "encode tiny pictures/000000.png --nfe 4"; do
    quietly $how -o here.npy
    quietly $how -o there.npy $device
    close here.npy there.npy 1e-3 || fail "$how"
done
quietly interpolate tiny pictures/000000.png pictures/000001.png -n 3 --nfe 4 -o between.png $device
quietly bench net tiny $device --json
json '.device == "opencl:0" and .seconds_per_image > 0'
quietly bench net tiny $device --precision fp16 --json
json '.precision == "fp16"'
refuses 2 "has fp32 and fp16, found 'bf16'" $draw x.npy $device --precision bf16
refuses 2 "no instruction sets" $draw x.npy $device --isa generic

if command -v curl >/dev/null && "$psld" serve --help | grep -q -- --device; then
    check "serve: jobs and runs on its device"
    . "$(dirname "$0")/serve.bash"
    serve_begin . $device
    job '{"kind": "draw", "model": "tiny", "n": 7, "nfe": 5}'
    get "api/jobs/$job/samples.npy" 200
    cmp a.npy "$logs/answer" || fail "the server draws others"
    post api/runs '{"path": "served", "data": "digits", "set": {"train.steps": 2, "model.nf": 8}}' 202
    answer '.command | contains("--device=opencl:0")'
    serve_end
else
    skip_part "serve on a device: no server, or no curl"
fi

# ---- Training ---------------------------------------------------------------------------------------------------------

# The network of digits with a quarter of the channels, on drawn ones.
small="$(dirname "$0")/../../configs/digits.yaml --data digits model.nf=8 model.classes=0 train.batch=4 train.steps=6 train.warmup=2
    data.size=16 model.attn_resolutions=[4] train.schedule=constant
    train.checkpoint_every=2 train.sample_every=6 train.sample_count=2 train.sample_nfe=2 train.evaluate_every=3"
losses() { sed 's/.*"loss": \([^,]*\),.*/\1/' "$1/log.jsonl"; }
same_losses() { # A B TOLERANCE
    paste -d' ' <(losses "$1") <(losses "$2") | awk -v tolerance="$3" '
        { d = $1 / $2 - 1; if (!(d >= -tolerance && d <= tolerance)) { print "loss " $1 " and " $2; bad = 1 } }
        END { exit bad || NR == 0 }' || fail "$1 and $2: other losses"
}
# strip_times RUN: its log without what clocks say.
strip_times() { sed 's/"seconds": [^,}]*//; s/"time": [^,}]*//' "$1/log.jsonl"; }

check "training digits: the CPU's losses"
trains $small -o here --device cpu
trains $small -o there $device
same_losses here there 1e-4
quietly sample there -n 2 --nfe 3 -o x.npy
"$psld" train $small --estimate --json $device >"$logs/out" 2>"$logs/err" || fail "$(cat "$logs/err")"
json '.device == "opencl:0" and .device_memory > 0 and .bytes > 0'
quietly sample tiny -n 20 --nfe 3 --estimate --json $device
json '.device == "opencl:0" and .device_bytes > 0'

check "tuning: the CPU's losses"
for at in cpu opencl:0; do
    "$psld" tune tiny --consistency --data digits -o "tuned-$at" train.steps=3 train.batch=4 train.sample_every=0 --device $at \
        >"$logs/out" 2>"$logs/err" || fail "$(cat "$logs/err")"
done
same_losses tuned-cpu tuned-opencl:0 1e-4

check "killed and continued on the device: the same bits"
for i in 1 2 3; do
    "$psld" train $small -o killed $device >/dev/null 2>&1 &
    pid=$!
    for _ in $(seq 1200); do
        if ! kill -0 $pid 2>/dev/null || ls killed/checkpoints/step-00000000$((2 * i)).safetensors >/dev/null 2>&1; then break; fi
        sleep 0.02
    done
    kill -9 $pid 2>/dev/null || true
    wait $pid 2>/dev/null || true
done
trains -o killed $device
cmp there/model.safetensors killed/model.safetensors || fail "another model after kill -9"

check "a run begun on the CPU goes on on the device, and the other way round"
for order in "cpu opencl:0" "opencl:0 cpu"; do
    rm -rf moved
    trains $small -o moved --device "${order% *}" train.steps=4
    trains -o moved --device "${order#* }" train.steps=6
    same_losses here moved 1e-3
done

# ---- Faults -----------------------------------------------------------------------------------------------------------

[ -n "${FAULTY_OPENCL-}" ] || { skip_part "faults of devices: no library that makes them" && exit; }
export PSLD_OPENCL=$FAULTY_OPENCL

check "a GPU is taken by itself where there is one, and the CPU for what it alone has"
gpu=(env PSLD_OPENCL_TUNE=0 FAULTY_KIND=gpu OCL_ICD_VENDORS=/etc/OpenCL/vendors)
"${gpu[@]}" "$psld" bench net tiny --json >"$logs/out"
json '.device == "opencl:0"'
"${gpu[@]}" "$psld" bench net tiny --isa generic --json >"$logs/out"
json '.device == "cpu" and .isa == "generic"'
"${gpu[@]}" "$psld" sample tiny -n 7 --nfe 5 -o b.npy >/dev/null
cmp a.npy b.npy || fail "the GPU was not taken"
"${gpu[@]}" "$psld" sample tiny -n 7 --nfe 5 -o b.npy --device gpu >/dev/null
cmp a.npy b.npy || fail "--device gpu takes another"
refuses 1 "device gpu: there is none; there is cpu, opencl:0" $draw x.npy --device gpu

check "too little memory: what is needed, what there is, and what fits"
quietly bench net tiny -b 64 --json --repetitions 1 $device
FAULTY_MEMORY=$(jq .plan_bytes "$logs/out")
export FAULTY_MEMORY
refuses 1 "--batch " sample tiny -n 2000 --nfe 3 --batch 2000 -o x.npy $device
says_error() { grep -qE "$1" "$logs/err" || fail "no \"$1\" in: $(cat "$logs/err")"; }
says_error '^psld: needs [0-9.]+ [GM]B, device opencl:0 has [0-9.]+ [GM]B: --batch [0-9]+ fits$'
fits=$(sed 's/.*--batch \([0-9]*\) fits/\1/' "$logs/err")
[ "$fits" -ge 60 ] && [ "$fits" -le 64 ] || fail "--batch $fits?"
quietly sample tiny -n 7 --nfe 5 -o b.npy $device
cmp a.npy b.npy || fail "other samples where memory is short"
export FAULTY_MEMORY=6000000
loses 1 "train.batch=" train $small train.batch=128 -o none $device
[ ! -e none ] || fail "a run that does not fit has begun"
unset FAULTY_MEMORY
export FAULTY_ROOM=500000
loses 1 "not as much is free" train $small -o none $device
[ ! -e none ] || fail "a run that does not fit has begun"
unset FAULTY_ROOM

check "a kernel that does not compile: the file, and the compiler's line; the CPU works"
cache=${XDG_CACHE_HOME-}
export FAULTY_BUILD=kernel XDG_CACHE_HOME=$logs/fresh # where nothing was compiled before
refuses 1 "does not compile" $draw x.npy $device
says_error "error: this driver has no such thing"
quietly $draw x.npy --device cpu
cmp cpu.npy x.npy || fail "the CPU draws others"
unset FAULTY_BUILD
export XDG_CACHE_HOME=$cache

check "a device that is lost: one line; what was saved stays, and the run goes on on the CPU"
FAULTY_LOST=50 refuses 1 "opencl:0: was lost" sample tiny -n 5 --nfe 30 -o x.npy $device
FAULTY_LOST=3000 loses 1 "was lost" train $small train.steps=2000 train.sample_every=0 -o lost $device
says_error "psld train -o lost goes on"
saved=$(quietly info lost --json && jq .saved "$logs/out")
[ "$saved" -gt 0 ] || fail "nothing was saved"
trains -o lost --device cpu train.steps=$((saved + 2))

# ---- Ranks ------------------------------------------------------------------------------------------------------------

if ! command -v mpirun >/dev/null || ! ldd "$psld" | grep -q libmpi; then skip_part "devices of ranks: no MPI" && exit; fi
check "ranks take turns with devices"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1 FAULTY_DEVICES=2
timeout 120 mpirun -n 2 "$psld" train $small -o ranks --device opencl:0,opencl:1 --threads 1 >"$logs/out" 2>&1 ||
    fail "$(cat "$logs/out")"
same_losses here ranks 1e-3
