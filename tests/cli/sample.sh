#!/usr/bin/env bash
# psld sample on exact models: shapes, options, and the same bits whatever batch and threads are.
set -eu
. "$(dirname "$0")/lib.bash"
write_mixture m.yaml

shape_is() { # FILE SHAPE
    quietly info "$1" --json
    says "\"type\": \"float32\", \"shape\": [$2]"
}

check "shape: positions, or states with --state"
quietly sample m.yaml -n 30 --nfe 10 -o x.npy
says "30 samples of 2 dimensions, 10 evaluations each"
shape_is x.npy "30, 2"
quietly sample m.yaml -n 30 --nfe 10 --state -o z.npy
shape_is z.npy "30, 4"
quietly sample m.yaml -n 5 --nfe 10 --process told --state -o told.npy
shape_is told.npy "5, 6"
quietly sample m.yaml -n 5 --nfe 10 --process vp --state -o vp.npy
shape_is vp.npy "5, 2"
cat >one.yaml <<'EOF'
mixture: {weights: [1], means: [[0.5]], scales: 0.3}
process: {preset: cld, kappa: 0.1}
EOF
quietly sample one.yaml -n 7 --nfe 10 -o one.npy
shape_is one.npy "7, 1"

check "positions are the first part of the states"
quietly sample m.yaml -n 1 --nfe 10 -o x1.npy
quietly sample m.yaml -n 1 --nfe 10 --state -o z1.npy
[ "$(tail -c 8 x1.npy | od -An -tx1)" = "$(tail -c 16 z1.npy | head -c 8 | od -An -tx1)" ] || fail "x is not the first part of z"

check "the same bits for every batch and number of threads"
for sampler in em sscs ode euler-ode heun; do
    budget="--nfe 9"
    [ $sampler = ode ] && budget="--tol 1e-3"
    for how in "--batch 1" "--batch 7" "--batch 1000" "--threads 1" "--threads 2" "--batch 7 --threads=2"; do
        # shellcheck disable=SC2086
        quietly sample m.yaml --sampler $sampler $budget $how -n 100 --seed 5 --state -o "now.npy"
        [ -e $sampler.npy ] || cp now.npy $sampler.npy
        cmp now.npy $sampler.npy || fail "$sampler $how: other bits"
    done
done
for sampler in sscs ode euler-ode heun; do
    ! cmp -s em.npy $sampler.npy || fail "em and $sampler are the same"
done

check "fewer samples are the first of more"
quietly sample m.yaml --sampler em --nfe 9 -n 10 --seed 5 --state -o few.npy
cmp <(tail -c 160 few.npy) <(tail -c 1600 em.npy | head -c 160) || fail "sample i depends on how many there are"

check "seeds differ, and are repeatable"
for seed in 0 1 18446744073709551615; do quietly sample m.yaml --sampler em --nfe 9 -n 10 --seed $seed -o "seed-$seed.npy"; done
quietly sample m.yaml --sampler em --nfe 9 -n 10 -o default.npy
cmp default.npy seed-0.npy
! cmp -s seed-0.npy seed-1.npy || fail "seeds 0 and 1 are the same"
! cmp -s seed-0.npy seed-18446744073709551615.npy || fail "a seed of 64 bits is cut"

check "--no-denoise, --eps, --grid, --corrector change the result, not the count of evaluations"
for how in "" --no-denoise "--eps 0.01" "--grid uniform" "--no-denoise --grid uniform" "--corrector 1"; do
    # shellcheck disable=SC2086
    quietly sample m.yaml --sampler em --nfe 9 -n 10 $how -o "how$how.npy" --json
    says '"nfe": 9'
done
[ "$(cksum how*.npy | cut -d ' ' -f 1 | sort -u | wc -l)" -eq 6 ] || fail "an option has no effect"

check "--tol: a smaller one costs more"
quietly sample m.yaml --sampler ode --tol 1e-2 -n 16 -o loose.npy --json
loose=$(grep -o '"nfe": [0-9]*' "$logs/out" | cut -d ' ' -f 2)
quietly sample m.yaml --sampler ode --tol 1e-6 -n 16 -o tight.npy --json
tight=$(grep -o '"nfe": [0-9]*' "$logs/out" | cut -d ' ' -f 2)
[ "$loose" -lt "$tight" ] || fail "$loose evaluations at 1e-2, $tight at 1e-6"

check "--z0 starts from given states; deterministic samplers then do not depend on the seed"
quietly sample m.yaml --sampler em -n 20 --nfe 1 --no-denoise --start exact --state -o z0.npy
quietly sample m.yaml --z0 z0.npy --sampler heun --nfe 11 --seed 1 -o a.npy --json
says '"n": 20'
quietly sample m.yaml --z0 z0.npy --sampler heun --nfe 11 --seed 2 -o b.npy
cmp a.npy b.npy || fail "heun depends on the seed"
quietly sample m.yaml --sampler em --z0 z0.npy --nfe 11 --seed 1 -o c.npy
quietly sample m.yaml --sampler em --z0 z0.npy --nfe 11 --seed 2 -o d.npy
! cmp -s c.npy d.npy || fail "em does not depend on the seed"
quietly sample m.yaml --z0 z0.npy -n 3 --sampler heun --nfe 11 -o e.npy
shape_is e.npy "3, 2"
cmp <(tail -c 24 e.npy) <(tail -c 160 a.npy | head -c 24) || fail "-n does not take the first of --z0"

check "naming the default sampler changes nothing, and every sampler has its own budget"
for process in "psld gamma=0.02" told; do # the walk of told ends before t = 1e-3
    quietly sample m.yaml --process "$process" -n 10 --state -o unnamed.npy --json
    says '"nfe": 30'
    quietly sample m.yaml --process "$process" --sampler ancestral -n 10 --state -o named.npy --json
    says '"nfe": 30'
    cmp unnamed.npy named.npy || fail "--sampler ancestral is not the default"
done
for pair in em:250 sscs:250 euler-ode:250 heun:250 dpm:50 collapsed:50 collapsed-heun:50; do
    quietly sample m.yaml --sampler ${pair%:*} -n 1 -o own.npy --json
    says "\"nfe\": ${pair#*:},"
done
quietly sample --help
tr -s ' \n' ' ' <"$logs/out" >help && mv help "$logs/out"
says "em, sscs, euler-ode, heun 250; dpm, collapsed, collapsed-heun 50; ipndm 10; ancestral 30"
says "quadratic (default of em, sscs, euler-ode, heun)"
says "(default: as the file says, or 1.5)" # of --weak-scale, which does not take 0

check "with --z0 the default sampler keeps the encoded data"
quietly sample m.yaml -n 6 -o data.npy
quietly encode m.yaml data.npy -o coded.npy
quietly sample m.yaml --z0 coded.npy -o back.npy
says "6 samples of 2 dimensions, from the given states by collapsed, 200 evaluations each"
quietly sample m.yaml --z0 coded.npy --sampler collapsed --nfe 200 --seed 9 -o same.npy
cmp back.npy same.npy || fail "the default with --z0 is not that of encode"
quietly sample m.yaml --z0 coded.npy --quality normal -o other.npy
says "by ancestral"
paste <(floats data.npy 12) <(floats back.npy 12) | awk '{ d = $1 - $2; n += d * d < 0.03 * 0.03 } END { exit n != 12 }' ||
    fail "data do not come back: $(floats back.npy 12)"

check "JSON"
quietly sample m.yaml --sampler em -n 12 --nfe 9 -o j.npy --json
[ "$(wc -l <"$logs/out")" -eq 1 ] || fail "not one line"
for key in n nfe seconds; do says "\"$key\": "; done
json '.n == 12 and .nfe == 9 and .seconds >= 0'

check "samples lie where the mixture is"
quietly sample m.yaml -n 2000 --sampler sscs --nfe 100 -o many.npy
floats many.npy 4000 | awk '{ s[NR % 2] += $1 / 2000 } END { a = s[1] - 0.5; b = s[0] + 0.25; print s[1], s[0]
    exit NR != 4000 || a * a >= 0.1 * 0.1 || b * b >= 0.05 * 0.05 }' >"$logs/mean" || fail "the mean is $(cat "$logs/mean")"

check "pictures of 2-D models"
quietly sample m.yaml -n 200 --nfe 20 -o p.png
quietly sample m.yaml -n 200 --nfe 20 -o p.svg
[ "$(head -c 8 p.png | od -An -tx1 | tr -d ' \n')" = 89504e470d0a1a0a ] || fail "p.png is no PNG"
grep -q '</svg>' p.svg || fail "p.svg is no SVG"

check "an existing file is replaced, and nothing else is left"
quietly sample m.yaml -n 3 --nfe 9 -o x.npy
shape_is x.npy "3, 2"
[ "$(find . -name '.*' -type f | wc -l)" -eq 0 ] || fail "temporary files are left"
