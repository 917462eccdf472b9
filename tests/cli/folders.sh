#!/usr/bin/env bash
# Folders: parents are made, runs and data are not taken for each other; configurations by their bare names.
set -eu
. "$(dirname "$0")/lib.bash"

tiny="model.nf=8 model.num_res_blocks=1 train.batch=4 train.steps=1 train.sample_every=0"
# trains ARGUMENTS: must succeed; what it says on stderr is progress.
trains() { "$psld" train "$@" >"$logs/out" 2>"$logs/err" || fail "psld train $*: $(cat "$logs/err")"; }

check "parents of a folder that is written into are made"
# shellcheck disable=SC2086
trains toy:moons -o a/b/run $tiny
[ -s a/b/run/model.safetensors ] || fail "no a/b/run"
write_networks
quietly sample net.safetensors -n 3 --nfe 2 -o c/d/pictures
[ "$(ls c/d/pictures/*.png | wc -l)" -eq 3 ] || fail "no c/d/pictures"
printf 'x' >file
# shellcheck disable=SC2086
refuses 1 "file" train toy:moons -o file/x/run $tiny

check "the folder of a run is not data"
refuses 1 "a/b/run: is the folder of a training run, not data (psld train -o a/b/run goes on with it" train a/b/run -o new
refuses 1 "is the folder of a training run" eval c/d/pictures a/b/run --weights c.safetensors

check "a folder of data, or of anything else, does not become a run"
# shellcheck disable=SC2086
refuses 1 "pictures: cannot become the folder of a run: it has other files in it (" train c/d/pictures -o c/d/pictures $tiny
# shellcheck disable=SC2086
refuses 1 "c/d: cannot become the folder of a run: it has other files in it (pictures)" train toy:moons -o c/d $tiny
mkdir empty logged
echo "a log of the shell" >logged/out.log
# shellcheck disable=SC2086
trains toy:moons -o empty $tiny
# shellcheck disable=SC2086
trains toy:moons -o logged $tiny

check "configurations by their bare names; a file of that name comes first"
quietly info cifar10-psld-39m
says "39.40M parameters"
quietly info configs/cifar10-psld-39m.yaml
says "39.40M parameters"
cp net.yaml cifar10-psld-39m.yaml
quietly info cifar10-psld-39m.yaml
! grep -q "39.40M" "$logs/out" || fail "the file was passed over"
rm cifar10-psld-39m.yaml
# shellcheck disable=SC2086
trains digits --data c/d/pictures -o named data.size=8 model.classes=0 model.ch_mult=[1,2] model.attn_resolutions=[4] data.held_out=0 $tiny
grep -q "noise_part: 0.95" named/config.yaml || fail "not as configs/digits.yaml says"
refuses 1 'no such file, folder or configuration: did you mean "cifar10-psld-39m"?' train cifar10-psld-39n -o new
refuses 1 'no such file, folder or configuration' train nonsense -o new
write_mixture ring.yaml
quietly sweep mixture --estimate "models={ring: ring.yaml}" number=10
says "cells of"

check "psld configs lists them with their sizes and what they are for, and prints one"
quietly configs
for words in "cifar10-psld-97m  *97.63M  3x32x32  *psld  *CIFAR-10, NCSN++" "digits-classifier  *0.29M  1x28x28" \
    "sweeps/mixture  *-  *sweep  *Samplers on a mixture"; do
    grep -q "^$words" "$logs/out" || fail "no \"$words\" in: $(cat "$logs/out")"
done
quietly configs --json
json '(.configs | INDEX(.name)) as $c | $c.digits.kind == "network" and $c.digits.shape == [1, 28, 28] and ($c | length) > 20'
quietly configs digits
says "name: ncsnpp"
refuses 1 "no such configuration" configs nonsense
PSLD_CONFIGS=$PWD/nowhere refuses 1 "no configurations found" configs
quietly train --help
says "Configurations: "
says "Documentation: "
