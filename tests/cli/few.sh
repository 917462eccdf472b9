#!/usr/bin/env bash
# Few-step samplers from the command line: qualities, grids, other recipes for one network, encoding and interpolation.
set -eu
. "$(dirname "$0")/lib.bash"
write_mixture m.yaml
cat >net.yaml <<'EOT'
process: psld gamma=0.02
data: {size: 8, channels: 1}
model: {name: ncsnpp, nf: 8, ch_mult: [1, 2], num_res_blocks: 1, attn_resolutions: []}
EOT
quietly convert net.yaml net.safetensors
quietly convert net.yaml third.safetensors process=told

check "qualities are budgets; given options come first"
for row in "draft 12" "normal 30" "best 100"; do
    # shellcheck disable=SC2086
    set -- $row
    quietly sample m.yaml -n 5 --quality "$1" -o "$1.npy" --json
    json ".nfe == $2 and .sampler == \"ancestral\""
done
quietly sample m.yaml -n 5 -o default.npy
cmp default.npy normal.npy
quietly sample m.yaml -n 5 --quality draft --nfe 7 -o seven.npy --json
json '.nfe == 7'
refuses 2 "--quality" sample m.yaml --quality best --sampler em -o x.npy
refuses 2 "--quality" sample m.yaml --quality excellent -o x.npy

check "the same bits for every batch and number of threads"
for sampler in dpm collapsed collapsed-heun ipndm ancestral; do
    for how in "--batch 1" "--batch 7" "--threads 1" "--batch 7 --threads=2"; do
        # shellcheck disable=SC2086
        quietly sample m.yaml --sampler $sampler --nfe 9 $how -n 50 --seed 5 --state -o "now.npy"
        [ -e $sampler.npy ] || cp now.npy $sampler.npy
        cmp now.npy $sampler.npy || fail "$sampler $how: other bits"
    done
done
for how in "--batch 1 --threads 3" "--batch 7" "--threads 1"; do
    # shellcheck disable=SC2086
    quietly sample m.yaml --sampler ancestral --eta 0.5 --order 1 --nfe 9 $how -n 50 --seed 5 --state -o now.npy
    [ -e half.npy ] || cp now.npy half.npy
    cmp now.npy half.npy || fail "--eta 0.5 $how: other bits"
done
quietly sample m.yaml --sampler ancestral --eta 0 --order 3 --grid sqrt --nfe 9 -n 50 --seed 5 --state -o eta.npy
cmp eta.npy dpm.npy || fail "ancestral without noise is not dpm"

check "guide, inpaint and restore with each of them, the same bits too"
quietly sample m.yaml -n 1 -o x.npy
for command in "guide m.yaml --label 1" "inpaint m.yaml --image x.npy --rect 1,0,1,1" \
    "restore m.yaml --task denoise --noise 0.2 --image x.npy"; do
    for sampler in "dpm --order 2" collapsed "collapsed-heun --grid log" ipndm "ancestral --eta 0.5"; do
        # shellcheck disable=SC2086
        quietly $command --sampler $sampler --nfe 7 --end-sigma 0.02 -n 20 --batch 1 --threads 3 -o once.npy
        # shellcheck disable=SC2086
        quietly $command --sampler $sampler --nfe 7 --end-sigma 0.02 -n 20 --batch 7 --threads 1 -o again.npy
        cmp once.npy again.npy || fail "$command, $sampler: other bits"
    done
    # shellcheck disable=SC2086
    refuses 2 "eta: expected a number from 0 to 1, found 2" $command --sampler ancestral --eta 2 -n 2 -o no.npy
    # shellcheck disable=SC2086
    refuses 2 "decreasing times" $command --sampler dpm --grid 1,0.1,0.2 -n 2 -o no.npy
done

check "grids by name and by their times, with every sampler"
for grid in uniform quadratic sqrt log rho 1,0.6,0.3,0.1,0.01; do
    for sampler in em sscs heun dpm ancestral; do
        quietly sample m.yaml -n 3 --sampler $sampler --grid $grid -o x.npy
    done
done
quietly sample m.yaml -n 3 --sampler em --grid 1,0.5,0.1 -o x.npy --json
json '.nfe == 3'
quietly sample m.yaml -n 3 --sampler dpm --end-sigma 0.05 --clip 1 --threshold 0.9 -o x.npy
refuses 2 "decreasing times" sample m.yaml --sampler em --grid 1,0.2,0.5 -o x.npy
refuses 2 "quadratic" sample m.yaml --grid magic -o x.npy
refuses 2 "order: the sampler dpm has orders 1 to 3, found 4" sample m.yaml --sampler dpm --order 4 -o x.npy
refuses 2 "order: the sampler em has only one order" sample m.yaml --sampler em --order 2 -o x.npy
refuses 2 "eta" sample m.yaml --sampler ancestral --eta 2 -o x.npy
refuses 2 "--eta" sample m.yaml --sampler ancestral --eta much -o x.npy
refuses 2 "--detail: expected a number from 0 on" sample m.yaml --sampler dpm --detail -0.1 -o x.npy
refuses 2 "--detail: expected a number from 0 on" sample m.yaml --sampler dpm --detail fine -o x.npy
refuses 2 "detail: the sampler em does not use it" sample m.yaml --sampler em --detail 0.1 -o x.npy
refuses 2 "eta: expected a number from 0 to 1, found \"-0.1\"" sample m.yaml --sampler ancestral --eta -0.1 -o x.npy
refuses 2 "--end-sigma: expected a positive number" sample m.yaml --sampler dpm --end-sigma -1 -o x.npy
refuses 2 "--end-sigma" sample m.yaml --sampler dpm --end-sigma little -o x.npy
refuses 2 "decreasing times" sample m.yaml --sampler dpm --grid 1,0.5,0.5 -o x.npy
refuses 2 "begin with 1" sample m.yaml --sampler dpm --grid 0.9,0.5 -o x.npy
refuses 2 "order: the sampler ancestral has orders 1 to 3, found 7" sample m.yaml --sampler ancestral --order 7 -o x.npy
refuses 2 "order: the sampler collapsed-heun has only one order" sample m.yaml --sampler collapsed-heun --order 2 -o x.npy
refuses 2 "effective noise from" sample m.yaml --sampler dpm --end-sigma 1e9 -o x.npy

check "a network of one recipe under others, within the noise it knows"
for process in vp cld "told"; do
    quietly sample net.safetensors --process "$process" -n 2 --nfe 5 -o x.npy --json
    json ".process == \"$process\""
done
quietly sample net.safetensors --process "psld gamma=0.02" -n 2 --nfe 5 -o same.npy
quietly sample net.safetensors -n 2 --nfe 5 -o own.npy
cmp same.npy own.npy
refuses 2 "recipe psld starts with effective noise" sample third.safetensors --process psld -n 2 -o x.npy
refuses 2 "set a larger eps" sample net.safetensors --process told --sampler em --eps 1e-3 --nfe 5 -n 2 -o x.npy
quietly sample net.safetensors --process told --sampler em --nfe 5 -n 2 -o told.npy

check "recipes that forget the data altogether, and times at which predicted variables say little of them"
quietly sample m.yaml --process "vp beta=60" -n 4 -o x.npy
refuses 2 "recipe vp: beta is too large: states at t = 1 do not depend on the data" sample m.yaml --process "vp beta=1400" -n 4 -o x.npy
cat >turns.yaml <<'EOT'
{name: turns, D: [[0, 0], [0, 0.0005]], Q: [[0, -0.05], [0.05, 0]], beta: 8, mass: [0.0001]}
EOT
quietly sample m.yaml --process turns.yaml --sampler dpm --nfe 801 -n 4 -o x.npy

check "options that would not count"
refuses 2 "--eta is for ancestral alone" sample m.yaml --sampler dpm --eta 0.5 -o no.npy
refuses 2 "--eps and --end-sigma both choose" sample m.yaml --eps 0.01 --end-sigma 0.1 -o no.npy
refuses 2 "--start and --z0 both choose" sample m.yaml --start exact --z0 x.npy -o no.npy

check "encoding: states, and what comes back"
quietly sample m.yaml -n 6 --sampler em --nfe 100 -o data.npy
quietly encode m.yaml data.npy -o z.npy --json
json '.n == 6 and .nfe == 200 and .round_trip >= 0 and .round_trip < 2 / 127.5'
quietly info z.npy --json
says '"shape": [6, 4]'
quietly sample m.yaml --z0 z.npy --sampler collapsed --nfe 200 -o back.npy
quietly sample net.safetensors -n 2 --nfe 3 -o pictures
quietly encode net.safetensors pictures/*.png --nfe 5 -o z.npy
quietly info z.npy --json
says '"shape": [2, 2, 8, 8]'
quietly encode net.safetensors pictures/*.png --grid 1,0.5,0.1 -o z.npy --json
json '.nfe == 2'
refuses 1 "--nfe: the times of --grid" encode net.safetensors pictures/*.png --grid 1,0.5,0.1 --nfe 2 -o x.npy
refuses 1 "data.npy: expected data of 1 x 8 x 8, one or [n, ...], found 6 x 2" encode net.safetensors data.npy -o x.npy
quietly convert net.yaml colour.safetensors data.channels=3
quietly sample colour.safetensors -n 1 --nfe 3 -o colour
quietly encode net.safetensors colour/000000.png --nfe 5 -o z.npy --json # becomes grey
json '.n == 1'
quietly convert net.yaml large.safetensors data.size=16
quietly sample large.safetensors -n 1 --nfe 3 -o large
refuses 1 "large/000000.png: expected pictures of 1 x 8 x 8, found 1 x 16 x 16" encode net.safetensors large/000000.png -o x.npy
quietly encode net.safetensors large/000000.png --fit --nfe 5 -o z.npy
refuses 1 "give them as .npy" encode m.yaml large/000000.png -o x.npy
refuses 1 "nothere.png" encode net.safetensors nothere.png -o x.npy
refuses 2 "--sampler" encode m.yaml data.npy --sampler em -o x.npy
refuses 2 "expected a model and" encode m.yaml -o x.npy

check "interpolation: a strip whose ends are the pictures"
quietly sample m.yaml -n 1 --sampler em --nfe 100 -o a.npy
quietly sample m.yaml -n 1 --sampler em --nfe 100 --seed 1 -o b.npy
quietly interpolate m.yaml a.npy b.npy -n 5 -o strip.npy
quietly info strip.npy --json
says '"shape": [5, 2]'
pictures=(pictures/*.png)
quietly interpolate net.safetensors "${pictures[0]}" "${pictures[1]}" -n 3 --nfe 5 -o strip.png
refuses 1 "one picture or point" interpolate m.yaml data.npy b.npy -o x.npy
refuses 2 "2 to 10000" interpolate m.yaml a.npy b.npy -n 1 -o x.npy
