#!/usr/bin/env bash
# Labels: training with them, drawing by class and with classifier-free guidance, comparing class by class, sweeps over
# guidance, and what is refused.
set -eu
. "$(dirname "$0")/lib.bash"

check "a score network learns the classes of its data"
"$psld" train toy:moons -o moons model.classes=auto train.steps=500 train.batch=128 train.sample_every=0 >log 2>&1 || fail "train: $(cat log)"
quietly info moons --json
json '.classes == ["0", "1"]'
quietly eval moons toy:moons --metric swd -n 1000 --label 0 --seed 1 --per-class --json
json '(.classes | length) == 1 and .classes[0].class == "0" and .classes[0].n_a == 1000 and
    0 < .classes[0].swd and 2 * .classes[0].swd < .swd'
quietly eval moons toy:moons --metric swd,fid -n 1000 --per-class --json
json '[.classes[] | .class] == ["0", "1"] and ([.classes[] | .n_a] | add) == 1000 and all(.classes[]; .n_a > 400) and
    all(.classes[]; .swd > 0 and .frechet_distance >= 0)'
quietly eval moons toy:moons --metric swd -n 400 --per-class
says "class                       a        b          swd"

check "sample i with label l of a seed is the same beside all others, in any batch and number of threads"
for label in 0 1 none; do
    quietly sample moons --label $label --cfg 2 -n 6 --seed 4 -o $label.npy
    floats $label.npy 12 >$label.txt
done
quietly sample moons --label 0,none,1 --cfg 2 -n 6 --seed 4 --batch 4 --threads 2 -o mixed.npy
floats mixed.npy 12 >mixed.txt
for i in 0 1 2 3 4 5; do
    set -- 0 none 1
    shift $((i % 3))
    [ "$(sed -n "$((2 * i + 1)),$((2 * i + 2))p" "$1.txt")" = "$(sed -n "$((2 * i + 1)),$((2 * i + 2))p" mixed.txt)" ] ||
        fail "sample $i with label $1"
done

check "without a label classes are drawn; guidance of 1, and of a range without times, is the plain prediction"
for seed in 0 1 2; do
    quietly sample moons -n 40 --seed $seed -o drawn.npy
    ! cmp -s drawn.npy before.npy || fail "seed $seed draws what the one before drew"
    cp drawn.npy before.npy
done
quietly sample moons --label 1 -n 9 -o plain.npy
quietly sample moons --label 1 --cfg 1 -n 9 -o one.npy
quietly sample moons --label 1 --cfg 5 --cfg-range 1e6,1e7 -n 9 -o nowhere.npy
cmp plain.npy one.npy || fail "cfg 1"
cmp plain.npy nowhere.npy || fail "cfg range"
quietly sample moons --label 1 --cfg 0 -n 9 -o zero.npy
quietly sample moons --label none -n 9 -o none.npy
cmp zero.npy none.npy || fail "cfg 0"
quietly convert moons guided.safetensors --cfg 3
quietly sample guided.safetensors --label 1 -n 9 -o default.npy
quietly sample moons --label 1 --cfg 3 -n 9 -o three.npy
cmp default.npy three.npy || fail "the guidance that a file keeps"

check "labels in every command that samples, and under every process"
for sampler in em sscs euler-ode heun ode dpm collapsed collapsed-heun; do
    quietly sample moons --label all --cfg 2 --sampler $sampler --process cld --eps 0.01 -n 4 -o x.npy
done
quietly sample moons --label 1 --cfg 2 --weak moons --weak-scale 2 -n 4 -o x.npy
quietly encode moons plain.npy --label 1 -o z.npy
quietly sample moons --z0 z.npy --label 1 --sampler collapsed --nfe 200 -o x.npy
paste <(floats plain.npy 18) <(floats x.npy 18) | awk '{ d = $1 - $2; if (d < -0.06 || d > 0.06) exit 1 }' ||
    fail "encoding with a label and back"
for i in 1 2; do
    quietly sample moons --label 1 -n 1 --seed $i -o point$i.npy
done
quietly interpolate moons point1.npy point2.npy --label 1 -o between.npy
write_networks 1 cat dog
sed 's/nf: 8,/nf: 8, classes: 2,/' net.yaml >labelled.yaml
quietly convert labelled.yaml labelled.safetensors
quietly sample labelled.safetensors --label dog,cat -n 2 --nfe 3 -o pictures
quietly inpaint labelled.safetensors --image pictures --rect 0,0,4,8 --label dog --cfg 2 -n 1 --nfe 3 -o x.npy
quietly restore labelled.safetensors --image pictures --task denoise --noise 0.1 --label cat -n 1 --nfe 3 -o x.npy
quietly guide labelled.safetensors --classifier c.safetensors --label dog -n 1 --nfe 3 -o x.npy

check "a sweep over guidance"
cat >sweep.yaml <<'YAML'
name: guidance
models: {moons: moons}
data: toy:moons
metrics: swd
samplers: [ancestral]
nfe: [10]
label: all
cfg: [1, 2]
number: 200
YAML
quietly sweep sweep.yaml -o sweep --json
json '[.rows[] | .cfg] == [1, 2] and .rows[0].swd != .rows[1].swd'
grep -q '</svg>' sweep/plot.svg || fail "plot"
quietly sweep sweep.yaml -o sweep cfg_range='[1e6, 1e7]' cfg='[2]' --json
mv "$logs/out" ranged.json
quietly sweep sweep.yaml -o sweep cfg='[1]' --json
json '.rows[0].swd == $ranged.rows[0].swd' ranged=ranged.json
[ "$(wc -l <sweep/results.jsonl)" -eq 3 ] || fail "cells that were done are computed again"

check "refusals"
refuses 2 "label: expected 0 to 1, found 2" sample moons --label 2 -n 1 -o no.npy
refuses 2 'label: a class is missing in "0,"' sample moons --label 0, -n 1 -o no.npy
refuses 2 'there is no class named "bird"; there are 0, 1' sample moons --label 0,bird -n 1 -o no.npy
refuses 2 'did you mean "dog"?' sample labelled.safetensors --label dg -n 1 -o no.npy
refuses 1 "has no classes, so it takes no labels" sample net.safetensors --label 0 -n 1 -o no.npy
refuses 1 "--cfg: net.safetensors has no classes" sample net.safetensors --cfg 2 -n 1 -o no.npy
refuses 2 "expected a number" sample moons --label 0 --cfg much -n 1 -o no.npy
refuses 2 "0 <= LO < HI" sample moons --label 0 --cfg 2 --cfg-range 3,1 -n 1 -o no.npy
refuses 2 "give one of them" sample moons --label 0 --labels plain.npy -n 1 -o no.npy
refuses 1 "plain.npy: expected one label per sample" sample moons --labels plain.npy -n 9 -o no.npy
refuses 1 "the data have 2 classes, the network 3" train toy:moons -o no model.name=mlp model.classes=3
refuses 1 "has no classes" train toy:swissroll -o no model.classes=auto
refuses 1 "takes no labels" sweep sweep.yaml -o no models=net.safetensors data=pictures metrics=fid
refuses 1 "has no classes" eval plain.npy toy:moons --metric swd --per-class
refuses 2 "for the samples of a model" eval plain.npy toy:moons --metric swd --label 1
refuses 2 "compares two sets" eval moons toy:moons --metric nll --per-class
refuses 2 "takes no labels" convert net.safetensors no.safetensors --cfg 2
refuses 2 "expected a number" convert moons no.safetensors --cfg x
refuses 2 "only .safetensors files keep it" convert moons no.pth --cfg 2
