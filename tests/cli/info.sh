#!/usr/bin/env bash
# psld info: says what a file is.
set -eu
. "$(dirname "$0")/lib.bash"
write_mixture m.yaml

check "an exact model"
quietly info m.yaml
says "m.yaml: exact model, a mixture in 2 dimensions under the recipe psld (k = 2)"
quietly info m.yaml --json
json '. == {kind: "exact model", dimensions: 2, process: "psld", k: 2}'

check "a recipe"
echo '{name: mine, D: [[0.5]], Q: [[0]]}' >r.yaml
quietly info r.yaml
says "r.yaml: recipe mine, k = 1"
quietly info --json r.yaml
json '. == {kind: "recipe", name: "mine", k: 1}'

check "an array"
quietly sample m.yaml -n 3 --nfe 5 -o x.npy
quietly info x.npy
says "x.npy: array of float32 [3, 2]"
quietly info x.npy --json
json '. == {kind: "array", type: "float32", shape: [3, 2]}'
printf '\223NUMPY\001\000\066\000%-53s\n12345678' "{'descr':'|u1','fortran_order':False,'shape':(8,)}" >u.npy
quietly info u.npy --json
says '"type": "uint8", "shape": [8]'

check "other files"
echo 'a: 1' >other.yaml
head -c 20 x.npy >cut.npy
echo 'text' >text.npy
mkdir folder.yaml
refuses 1 "other.yaml" info other.yaml
refuses 1 "cut.npy" info cut.npy
refuses 1 "text.npy: not a .npy file" info text.npy --json
refuses 1 "absent.npy: cannot read" info absent.npy
refuses 1 "absent.yaml: cannot read" info absent.yaml
refuses 1 "folder.yaml: cannot read" info folder.yaml
refuses 2 "expected one file, found 0" info
refuses 2 "expected one file, found 2" info m.yaml r.yaml

write_networks 3 cat dog

check "a model file: its description; tensors only with --tensors"
quietly info net.safetensors
says "net.safetensors: score network, "
says "recipe psld, data 3 x 8 x 8"
says "  predicts      the noise, eps"
says "tensors, "
! grep -q "all_modules" "$logs/out" || fail "tensors are listed: $(head -3 "$logs/out")"
quietly info net.safetensors --tensors
says "all_modules.0.weight"
quietly info net.safetensors --json
json '.kind == "tensors" and .numbers > 0 and (.tensors[0] | (.name | length) > 0 and (.shape | length) > 0)'
json '.network | .kind == "score network" and .process == "psld" and .shape == [3, 8, 8] and .predicts == "eps"'
json '.network.parameters == .numbers and .network.flops > 0 and (.network | has("steps") | not)'

check "a classifier and its classes"
quietly info c.safetensors
says "c.safetensors: classifier, "
says "  classes       2: cat, dog"

check "a run: steps are in the model; before the first checkpoint the network is known"
sed 's/^model/train: {loss: cross_entropy, batch: 2, steps: 3, checkpoint_every: 2, sample_every: 0, evaluate_every: 3, evaluate_count: 2}\nmodel/' c.yaml >run.yaml
quietly sample net.safetensors -n 20 --nfe 2 -o cats
mkdir -p pets/cat pets/dog
for i in cats/0000*.png; do cp "$i" pets/cat/ && cp "$i" pets/dog/; done
"$psld" train run.yaml --data pets data.held_out=0.2 -o run >"$logs/out" 2>"$logs/err" || fail "$(cat "$logs/err")"
quietly info run
says "run: training run of a classifier, step 3 of 3, finished"
says "  classes       2: cat, dog"
says "recipe psld, data 3 x 8 x 8"
says "  accuracy      "
says "  page          run/index.html"
quietly info run --json
json '.kind == "training run" and .trains == "classifier" and .classes == ["cat", "dog"]'
json '0 <= .accuracy and .accuracy <= 1 and .process == "psld" and .step == 3 and .parameters > 0'
quietly info run/model.safetensors
says "  trained       3 of 3 steps"
quietly convert run/model.safetensors again.safetensors
quietly info again.safetensors
says "  trained       3 of 3 steps"
rm -r run/checkpoints/* run/model.safetensors
quietly info run
says "  classes       2: cat, dog"
says "  checkpoints   none yet"

check "a picture, whole and broken"
quietly info cats/000000.png
says "cats/000000.png: PNG image of 8 x 8 pixels in colour, "
quietly info cats/000000.png --json
json '. == {kind: "image", format: "PNG", width: 8, height: 8, channels: 3}'
head -c 100 cats/000000.png >cut.png
refuses 1 "cut.png: a broken PNG" info cut.png

check "arrays, and what they are as data"
quietly sample net.safetensors -n 3 --nfe 2 -o x.npy
quietly info x.npy
says "x.npy: array of float32 [3, 3, 8, 8], "
says "  as data       3 items of 3 x 8 x 8 numbers"
quietly info x.npy --json
json '. == {kind: "array", type: "float32", shape: [3, 3, 8, 8]}'
quietly sample net.safetensors -n 3 --nfe 2 -o x.npz
quietly info x.npz
says "x.npz: array of images, 3 items of 8 x 8 pixels in colour"
if python3 -c 'import numpy' 2>/dev/null; then
    python3 -c "
import numpy
numpy.savez('stats.npz', mu=numpy.zeros(5), sigma=numpy.eye(5), note=numpy.array('text'))"
    quietly info stats.npz
    says "stats.npz: 3 arrays, "
    says "  sigma         float64 [5, 5]"
    says "  note          unreadable []"
    quietly info stats.npz --json
    json '.kind == "arrays" and .arrays[0] == {name: "mu", type: "float64", shape: [5]}'
else
    skip_part "statistics (.npz): there is no NumPy"
fi

check "unknown files"
echo text >plain.txt
refuses 1 "plain.txt: neither a safetensors file nor a PyTorch checkpoint" info plain.txt
