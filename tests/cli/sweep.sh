#!/usr/bin/env bash
# psld sweep: cells, tables, the order of the samplers, resuming, estimates, and what is refused.
set -eu
. "$(dirname "$0")/lib.bash"
source=$(cd "$(dirname "$0")/../.." && pwd)
write_mixture m.yaml
cat >sweep.yaml <<'YAML'
name: small
models: {two: m.yaml}
processes: [vp, psld gamma=0.02]
metrics: swd,fid
samplers: [em, ode]
grids: [uniform, quadratic]
nfe: [8, 64]
tolerances: [1e-2, 1e-4]
number: 1500
YAML

check "every combination is a row: recipes x (grids x budgets + tolerances)"
quietly sweep sweep.yaml -o out --json
json '(.rows | length) == 2 * (2 * 2 + 2) and .name == "small"'
json 'all(.rows[]; .swd > 0 and .fid >= 0 and .nfe > 0 and .number == 1500)'
# More evaluations are better, and the last of the flow is better than the first of em.
json '(.rows | INDEX([.process, .sampler, .grid, if .sampler == "em" then .nfe else .tolerance end] | tojson)) as $at |
    def at($key): $at[$key | tojson]; all("vp", "psld gamma=0.02"; . as $p |
        all("uniform", "quadratic"; . as $g | at([$p, "em", $g, 64]).swd < at([$p, "em", $g, 8]).swd) and
        0 < at([$p, "ode", null, 1e-4]).swd and at([$p, "ode", null, 1e-4]).swd < at([$p, "em", "quadratic", 8]).swd and
        at([$p, "ode", null, 1e-4]).nfe > at([$p, "ode", null, 1e-2]).nfe)'
for file in results.jsonl table.csv table.json plot.svg; do [ -s out/$file ] || fail "no out/$file"; done
[ "$(wc -l <out/table.csv)" -eq 13 ] || fail "table.csv"
[ "$(wc -l <out/results.jsonl)" -eq 12 ] || fail "results.jsonl"
grep -q '</svg>' out/plot.svg || fail "plot.svg"

check "without grids each sampler takes its own"
sed /grids/d sweep.yaml >own.yaml
quietly sweep own.yaml -o own 'processes=[vp]' 'samplers=[em, dpm, collapsed, collapsed-heun, ancestral]' 'nfe=[8]' number=50 --json
json '[.rows[] | {(.sampler): .grid}] | add ==
    {em: "quadratic", dpm: "sqrt", collapsed: "log", "collapsed-heun": "rho", ancestral: "log"}'

check "a second call continues where the first ended, and gives the same table"
cp out/table.csv whole.csv
head -5 out/results.jsonl >part && printf '{"key": "cut sho' >>part && mv part out/results.jsonl
quietly sweep sweep.yaml -o out
says sampler
cut -d , -f 1-10 whole.csv >a && cut -d , -f 1-10 out/table.csv >b && cmp a b || fail "another table"
[ "$(grep -c '^{"key":"[^"]*",' out/results.jsonl)" -eq 12 ] || fail "a row was lost behind a line cut short"

check "lines that are no results are passed over"
cp out/results.jsonl whole.jsonl
key=$(head -1 whole.jsonl | grep -o '"key":"[^"]*"')
{
    printf '\n[1, 2]\n7\n{"key": 3}\n{}\n{%s}\n{%s,"nfe":"many","seconds":[]}\n\0\377\n' "$key" "$key"
    cat whole.jsonl
    printf '{%s}\n{"key": "cut sho' "$key"
} >out/results.jsonl
quietly sweep sweep.yaml -o out
cut -d , -f 1-10 out/table.csv | cmp - a || fail "another table"
mv whole.jsonl out/results.jsonl

check "changed models and data are computed again; new names alone are not"
cat >named.yaml <<'YAML'
models: [named-model.yaml]
processes: [named-process.yaml]
metrics: swd
samplers: [em]
nfe: [20]
number: 300
YAML
# lines NUMBER: the sweep has so many results.
lines() { [ "$(wc -l <named/results.jsonl)" -eq "$1" ] || fail "expected $1 results: $(cat named/results.jsonl)"; }
write_mixture named-model.yaml
printf 'D: [[1]]\nQ: [[0]]\nbeta: 8\n' >named-process.yaml
quietly sweep named.yaml -o named
quietly sweep named.yaml -o named
lines 1
sed -i 's/beta: 8/beta: [0.1, 20]/' named-process.yaml
quietly sweep named.yaml -o named
lines 2
sed -i 's/0.5/0.7/g' named-model.yaml
quietly sweep named.yaml -o named --json
lines 3
sed -n 3p named/results.jsonl >third
json '.rows == [$third]' third=third
cp named-model.yaml other-name.yaml
cp named-process.yaml other-process.yaml
quietly sweep named.yaml -o named --json 'models={label: other-name.yaml}' 'processes=[other-process.yaml]'
lines 3
json '[.rows[] | .model, .process] == ["label", "other-process.yaml"]'
quietly sample named-model.yaml -n 300 --nfe 30 --seed 1 -o named.npy
quietly sweep named.yaml -o named data=named.npy
lines 4
quietly sample named-model.yaml -n 300 --nfe 30 --seed 2 -o named.npy
quietly sweep named.yaml -o named data=named.npy
lines 5

check "an exact model is compared with its own draws, whichever models stand beside it"
quietly sweep named.yaml -o alone --json 'models=[named-model.yaml]'
cp "$logs/out" alone.json
quietly sweep named.yaml -o beside --json 'models=[m.yaml, named-model.yaml]'
json '.rows[1].swd == $alone.rows[0].swd and .rows[1].swd != null' alone=alone.json

check "overrides, and other seeds"
quietly sweep sweep.yaml -o seeds 'processes=[vp]' 'samplers=[em]' 'nfe=[8]' 'grids=[quadratic]' 'seeds=[1, 2]' number=200 --json
json '(.rows | length) == 2 and (.means | length) == 1 and .rows[0].swd != .rows[1].swd'
json '.means[0] | .seeds == 2 and (has("seed") | not) and .nfe == 8'
json '[.rows[].swd] as [$a, $b] | .means[0] | (.swd - ($a + $b) / 2 | fabs) < 1e-12 and
    (.swd_spread - ($a - $b | fabs) / (2 | sqrt) | fabs) < 1e-12'
quietly sweep sweep.yaml -o seeds 'processes=[vp]' 'samplers=[em]' 'nfe=[8]' 'grids=[quadratic]' 'seeds=[1, 2]' number=200
says "swd_spread"
[ "$(wc -l <"$logs/out")" -eq 2 ] || fail "seeds are not one row: $(cat "$logs/out")"
[ "$(wc -l <seeds/table.csv)" -eq 3 ] || fail "table.csv has not a row a seed"

check "images: a classifier's distance is not called fid; images continued"
write_networks
quietly sample net.safetensors -n 12 --sampler em --nfe 2 -o real
cat >images.yaml <<'YAML'
models: [net.safetensors]
data: real
weights: c.safetensors
samplers: [em]
grids: [uniform]
nfe: [3]
number: 6
YAML
quietly sweep images.yaml -o images --json
cp "$logs/out" free
# results: how many the sweep of images has. What a folder holds counts, and so do the weights.
results() { wc -l <images/results.jsonl; }
quietly sweep images.yaml -o images
[ "$(results)" -eq 1 ] || fail "computed again"
touch -d 2001-01-01 real/"$(ls real | grep -m 1 png)"
quietly sweep images.yaml -o images
[ "$(results)" -eq 2 ] || fail "an image has changed, and was not noticed"
touch -d 2001-01-01 c.safetensors
quietly sweep images.yaml -o images
[ "$(results)" -eq 3 ] || fail "weights have changed, and were not noticed"
cp free "$logs/out"
json '(.rows | length) == 1 and (.rows[0] | .frechet > 0 and (has("fid") | not) and .nfe == 3)'
quietly sweep images.yaml -o images --json inpaint.images=real inpaint.hide=lower
json '0 < .rows[0].frechet and .rows[0].frechet != $free.rows[0].frechet' free=free
refuses 1 "expected left, right, upper, lower or centre" sweep images.yaml -o images inpaint.images=real inpaint.hide=all
check "images continued behind masks: strokes of digits (IDX), a picture for all, and as the paper's authors did"
# write_idx FILE COUNT: digits of 4 x 4 with one faint stroke each, in column i modulo 4
write_idx() {
    printf "\\0\\0\\010\\003\\0\\0\\0\\00$2\\0\\0\\0\\004\\0\\0\\0\\004" >"$1"
    for ((i = 0; i < $2; i++)); do
        for row in 1 2 3 4; do
            for column in 0 1 2 3; do
                if [ $((i % 4)) -eq "$column" ]; then printf '\001'; else printf '\000'; fi
            done
        done
    done >>"$1"
}
write_idx strokes-idx3-ubyte 6
write_idx few-idx3-ubyte 5
quietly sweep images.yaml -o images --json inpaint.images=real inpaint.masks=strokes-idx3-ubyte
cp "$logs/out" strokes
quietly sweep images.yaml -o images --json inpaint.images=real inpaint.masks=strokes-idx3-ubyte inpaint.method=authors
json '$strokes.rows[0].key + "|authors" == .rows[0].key' strokes=strokes
quietly sweep images.yaml -o images --json inpaint.images=real inpaint.masks=real/"$(ls real | grep -m 1 png)"
json '.rows[0].key != $strokes.rows[0].key' strokes=strokes
refuses 1 "few-idx3-ubyte: has 5 masks for 6 images" sweep images.yaml -o images inpaint.images=real \
    inpaint.masks=few-idx3-ubyte
refuses 1 "expected either hide or masks" sweep images.yaml -o images inpaint.images=real inpaint.hide=left \
    inpaint.masks=strokes-idx3-ubyte
refuses 1 "expected replace or authors" sweep images.yaml -o images inpaint.images=real inpaint.method=magic
refuses 1 "expected pictures as masks" sweep images.yaml -o images inpaint.images=real inpaint.masks=toy:moons:20

refuses 1 "real: has 12 images, 13 are to be continued" sweep images.yaml -o images inpaint.images=real number=13

sed "s/size: 8/size: 16/" net.yaml >net16.yaml
quietly convert net16.yaml net16.safetensors
quietly sample net16.safetensors -n 12 --sampler em --nfe 2 -o large
refuses 1 "the classifier takes images of 1 x 8 x 8" sweep images.yaml -o images data=large
quietly sweep images.yaml -o images data=large size=8 --json
cp "$logs/out" cropped
quietly sweep images.yaml -o images data=large size=8 fit=stretch --json
json '.rows[0].key != $cropped.rows[0].key' cropped=cropped
quietly sweep images.yaml -o images data=large size=8 resample=bilinear --json
json '$cropped.rows[0] as $before | .rows[0] | .key == $before.key + " bilinear" and .frechet != $before.frechet' cropped=cropped
refuses 1 'expected one of lanczos, bilinear, bicubic, box, nearest, bilinear_plain, found "cubic"' \
    sweep images.yaml -o images data=large size=8 resample=cubic
refuses 1 "expected crop or stretch" sweep images.yaml -o images data=large size=8 fit=squeeze

check "a sampler may say its own order, grid, budget ..."
quietly sweep sweep.yaml -o words 'processes=[vp]' 'samplers=[em, ancestral order=1 eta=0.5 grid=log, dpm nfe=5]' 'nfe=[8]' 'grids=[quadratic, sqrt]' number=200 --json
json '[.rows[] | [.sampler, .grid, .nfe]] ==
    [["em", "quadratic", 8], ["em", "sqrt", 8], ["ancestral order=1 eta=0.5 grid=log", "log", 8],
     ["dpm nfe=5", "quadratic", 5], ["dpm nfe=5", "sqrt", 5]]'

check "estimate"
quietly sweep sweep.yaml --estimate --json
json '.cells == 12 and .seconds > 0'
quietly sweep sweep.yaml --estimate
says "12 cells of 1500 samples"

check "the sweeps that come with the project read"
for config in "$source"/configs/sweeps/*.yaml; do
    case $config in */mixture.yaml | */digits-*.yaml) continue ;; esac
    refuses 1 "runs/" sweep "$config" --estimate
done
for name in mixture digits-few-steps; do
    (cd "$source" && "$psld" sweep configs/sweeps/$name.yaml --estimate number=2 >/dev/null) || fail "$name.yaml"
done

check "refusals"
refuses 2 "no sweep given" sweep
refuses 2 "no output given" sweep sweep.yaml
refuses 2 "expected an override" sweep sweep.yaml x -o y
refuses 1 "unknown key" sweep sweep.yaml --estimate colour=red
refuses 1 "nothing" sweep sweep.yaml --estimate 'samplers=[nothing]'
refuses 1 'sampler: no option "colour"' sweep sweep.yaml --estimate 'samplers=[em colour=red]'
refuses 1 'order: expected a whole number, found "two"' sweep sweep.yaml --estimate 'samplers=[dpm order=two]'
refuses 1 "expected key=value" sweep sweep.yaml --estimate 'samplers=[dpm fast]'
refuses 1 'grid: expected one of uniform' sweep sweep.yaml --estimate 'samplers=[dpm grid=magic]'
refuses 1 "expected some of fid" sweep sweep.yaml --estimate metrics=fod
refuses 1 "expected round or floor" sweep sweep.yaml --estimate quantize=flor
refuses 1 "expected a whole number" sweep sweep.yaml --estimate 'nfe=[5.5]'
refuses 1 "5 is listed twice" sweep sweep.yaml -o new 'nfe=[5, 8, 5]'
refuses 1 "1 is listed twice" sweep sweep.yaml -o new 'seeds=[1, 1]'
refuses 1 '"em" is listed twice' sweep sweep.yaml -o new 'samplers=[em, ode, em]'
refuses 1 '"m.yaml" is listed twice' sweep sweep.yaml -o new 'models=[m.yaml, m.yaml]'

check "a cell that cannot be computed is found before the first is"
refuses 1 "sweep.yaml: em: nfe: em needs at least 2 evaluations here, found 1" sweep sweep.yaml -o new 'nfe=[5, 1]'
refuses 1 "grid: expected" sweep sweep.yaml -o new 'grids=[uniform, magic]'
refuses 1 "order: the sampler em has only one order" sweep sweep.yaml -o new 'samplers=[ode, em order=2]'
refuses 1 "nowhere.yaml" sweep sweep.yaml -o new 'models=[m.yaml, nowhere.yaml]'
refuses 1 "nonsense" sweep sweep.yaml -o new 'processes=[vp, nonsense]'
refuses 1 "a classifier has no samples" sweep images.yaml -o new 'models=[net.safetensors, c.safetensors]'
refuses 1 "data is missing" sweep sweep.yaml -o new 'models=[m.yaml, net.safetensors]' 'processes=[psld gamma=0.02]'
