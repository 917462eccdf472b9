#!/usr/bin/env bash
# Networks of other projects on the command line: what works, and one clear line for what does not.
set -eu
. "$(dirname "$0")/lib.bash"

golden=$(cd "$(dirname "$0")/../golden/foreign" && pwd)
edm=$golden/edm-skip vp=$golden/edm-vp heads=$golden/diffusers-heads classes=$golden/diffusers-classes

# ---- What works
for model in "$edm/network.pkl" "$golden/edm-adm/network.pkl" "$heads" "$heads/unet"; do
    "$psld" info "$model" | grep -q "network of    \(EDM\|diffusers\)" || fail "info $model"
    "$psld" sample "$model" -n 2 --nfe 4 -o x.npy >/dev/null || fail "sample $model"
    "$psld" sample "$model" -n 2 --nfe 4 --process psld --sampler sscs -o x.npy >/dev/null || fail "sample $model under psld"
done
"$psld" sample "$edm/network.pkl" --label 1 --cfg 2 -n 2 --nfe 4 -o x.npy >/dev/null || fail "cfg"
"$psld" convert "$edm/network.pkl" ours.safetensors >/dev/null || fail "convert"
for model in "$edm/network.pkl" ours.safetensors; do
    "$psld" score "$model" --x "$edm/x.npy" --sigma "$edm/sigma.npy" --label "$edm/label.npy" -o "$(basename "$model").npy"
done
cmp network.pkl.npy ours.safetensors.npy || fail "a converted file says something else"
"$psld" score "$heads" --x "$heads/x.npy" --timestep "$heads/timestep.npy" -o out.npy || fail "score --timestep"
"$psld" sample "$heads" --timesteps "$heads/ddim20_timesteps.npy" --sampler dpm --order 1 --no-denoise \
    --z0 "$heads/x.npy" -o x.npy >/dev/null || fail "--timesteps"
# Timesteps with more noise (1e4 at the 499th) than the recipe vp reaches.
cosine=$golden/diffusers-scale-shift
printf '\223NUMPY\001\000\066\000%-53s\n\363\001\0\0\220\001\0\0\012\0\0\0' \
    "{'descr':'<i4','fortran_order':False,'shape':(3,)}" >noisy.npy
"$psld" sample "$cosine" --timesteps noisy.npy --sampler dpm --order 1 --no-denoise --z0 "$cosine/x.npy" \
    -o walk.npy >/dev/null || fail "noisy timesteps"
"$psld" sample "$cosine" --process "vp beta=[0.1,40]" --timesteps noisy.npy --sampler dpm --order 1 --no-denoise \
    --z0 "$cosine/x.npy" -o wide.npy >/dev/null || fail "noisy timesteps of a given process"
[ "$(wc -c <walk.npy)" -eq "$(wc -c <"$cosine/x.npy")" ] || fail "noisy timesteps: size"
"$psld" sample "$classes" --labels "$classes/label.npy" --nfe 4 -o x.npy >/dev/null || fail "labels of diffusers"
rm -f ./*.npy ours.safetensors

# ---- Labels
refuses 2 "label" score "$edm/network.pkl" --x "$edm/x.npy" --sigma "$edm/sigma.npy" --label 3 -o no.npy
refuses 2 "takes no labels" score "$heads" --x "$heads/x.npy" --timestep "$heads/timestep.npy" --label 0 -o no.npy
refuses 2 "needs one" score "$classes" --x "$classes/x.npy" --timestep "$classes/timestep.npy" -o no.npy

# ---- Noise and timesteps
refuses 2 "timesteps" score "$edm/network.pkl" --x "$edm/x.npy" --timestep "$edm/sigma.npy" -o no.npy
refuses 2 "no discrete timesteps" sample "$edm/network.pkl" --timesteps "$heads/ddim20_timesteps.npy" --sampler dpm \
    --z0 "$edm/x.npy" -o no.npy
refuses 2 "sigma: sample" score "$heads" --x "$heads/x.npy" --sigma "$heads/timestep.npy" -o no.npy
refuses 2 "process: recipe" sample "$classes" --process psld -n 1 -o no.npy
refuses 2 "process vp" sample "$heads" --process told --timesteps "$heads/ddim20_timesteps.npy" --sampler dpm \
    --z0 "$heads/x.npy" -o no.npy
refuses 2 "--z0" sample "$heads" --timesteps "$heads/ddim20_timesteps.npy" -o no.npy
refuses 2 "give no --nfe" sample "$heads" --timesteps "$heads/ddim20_timesteps.npy" --nfe 3 --z0 "$heads/x.npy" -o no.npy
refuses 2 "--x goes with" score "$heads" --x "$heads/x.npy" -o no.npy

# ---- Files
broken() { # NAME KEY VALUE: the pipeline with a key of unet/config.json set
    rm -rf "$1" && mkdir -p "$1" && cp -r "$heads/unet" "$heads/scheduler" "$1/" && chmod -R u+w "$1"
    sed -i "s/\"$2\": *\(\"[^\"]*\"\|[^,]*\)/\"$2\": $3/" "$1/unet/config.json"
}
broken class _class_name '"UNet2DConditionModel"'
refuses 1 'unet/config.json:2: _class_name: expected UNet2DModel, found "UNet2DConditionModel"' info class
broken fourier time_embedding_type '"fourier"'
refuses 1 'time_embedding_type: expected positional, found "fourier"' sample fourier -o no.npy
broken groups norm_num_groups 3
refuses 1 'norm_groups' sample groups -o no.npy
broken weights layers_per_block 2
refuses 1 'missing' sample weights -o no.npy
sed -i 's/"rescale_betas_zero_snr": false/"rescale_betas_zero_snr": true/' class/scheduler/scheduler_config.json
cp "$heads/unet/config.json" class/unet/
refuses 1 'rescale_betas_zero_snr: expected false' info class
sed -i 's/"DDPMScheduler"/"FlowMatchEulerDiscreteScheduler"/' class/scheduler/scheduler_config.json
refuses 1 ', ..., found "FlowMatch' info class
rm -f groups/unet/*.safetensors && cp "$heads/unet/config.json" groups/unet/
refuses 1 'has no weights' info groups
mkdir other && echo '{"_class_name": "DiTPipeline"}' >other/model_index.json
refuses 1 'has no unet/config.json' info other

sed 's/EDMPrecond/EDMPrecone/' "$edm/network.pkl" >class.pkl
refuses 1 'class EDMPrecone; expected EDMPrecond, VPPrecond, VEPrecond or iDDPMPrecond' sample class.pkl -o no.npy
refuses 1 'class EDMPrecone' info class.pkl
head -c 50000 "$vp/network.pkl" >cut.pkl
refuses 1 'cut.pkl: byte 2: the pickle is cut off' sample cut.pkl -o no.npy
[ ! -e executed ] || fail "source from a checkpoint was executed"
