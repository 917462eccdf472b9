#!/usr/bin/env bash
# psld design: what it finds, prints and writes, going on after an interruption, seeds, and what is refused.
set -eu
. "$(dirname "$0")/lib.bash"
write_mixture m.yaml
few=(--trials 30 --searches 1 -n 300 --final 200 --directions 16)

check "a search from two presets: table, front, recipes, picture"
quietly design m.yaml -o out --sampler sscs --nfe 6 "${few[@]}" vp psld gamma=0.05
says "final comparison"
says "two sets of the data"
for file in results.jsonl best.yaml front-1.yaml front.csv front.svg; do [ -s out/$file ] || fail "no out/$file"; done
[ "$(wc -l <out/results.jsonl)" -eq 35 ] || fail "results.jsonl: $(wc -l <out/results.jsonl) lines"
grep -q '</svg>' out/front.svg || fail "front.svg"
[ "$(($(wc -l <out/front.csv) - 1))" -eq "$(ls out/front-*.yaml | wc -l)" ] || fail "front.csv has other rows"

check "the best one is the least of all, and a recipe"
quietly design m.yaml -o out --sampler sscs --nfe 6 "${few[@]}" vp psld gamma=0.05 --json
json '[.rows[] | select(.stage != "final") | .total] as $all | .best.total == ($all | min) and ($all | length) == 32'
json '[.rows[] | select(.stage == "final")] | length == 3 and .[0].best == true and all(.[]; .error > 0)'
json '.front as $f | [range($f | length)] | all(.[]; . as $i | $i == 0 or
    ($f[$i].distance > $f[$i - 1].distance and $f[$i].error < $f[$i - 1].error))'
cp "$logs/out" whole.json
[ "$(wc -l <out/results.jsonl)" -eq 35 ] || fail "measured again"
quietly recipe out/best.yaml
quietly sample m.yaml --process out/best.yaml -n 10 --nfe 6 -o x.npy

check "a run that was interrupted ends as if it had not been; lines that are no results are passed over"
mkdir part
{ head -9 out/results.jsonl && printf '[1]\n{"key": 3}\n\n{"key": "cut sho'; } >part/results.jsonl
quietly design m.yaml -o part --sampler sscs --nfe 6 "${few[@]}" vp psld gamma=0.05 --json
json '$whole == .' whole=whole.json
cmp out/best.yaml part/best.yaml || fail "another recipe"

check "another seed, another search"
quietly design m.yaml -o part --sampler sscs --nfe 6 "${few[@]}" vp psld gamma=0.05 --seed 3 --json
json '$whole.best.recipe != .best.recipe and $whole.rows[0].error != .rows[0].error' whole=whole.json

check "sums, limits, and parts of a recipe; without the error nothing is drawn"
quietly design m.yaml -o sum --sampler dpm --nfe 5 "${few[@]}" --criterion distance=2,factors --limit factors=50 \
    --learn Q,mass psld --json
json '(.rows | length) == 31 and all(.rows[]; .error == 0 and (.total >= 1e6) == (.factors > 50))'
grep -q '^D: \[\[0.005, 0\], \[0, 0.50125\]\]$' sum/best.yaml || fail "D is not that of psld: $(cat sum/best.yaml)"

check "data as a mixture: points of a toy set, all presets"
quietly design toy:moons -o moons --nfe 5 --trials 3 -n 100 --final 50 --directions 8 --components 50 --scale 0.2 --json
json '([.rows[] | select(.stage == "start")] | length) == ([.rows[] | select(.stage == "final")] | length) - 1'

check "refusals"
refuses 2 "no mixture given" design
refuses 2 "no output given" design m.yaml
refuses 2 'learn: expected some of D, Q, mass, beta, found "colour"' design m.yaml -o new --learn D,colour
refuses 2 'criterion: expected one of error, distance, factors, found "eror": did you mean "error"?' \
    design m.yaml -o new --criterion eror
refuses 2 "limit: expected NAME=NUMBER" design m.yaml -o new --limit factors
refuses 1 "missing.yaml" design missing.yaml -o new
refuses 1 "missing.npy" design missing.npy -o new
refuses 1 "neither a preset" design m.yaml -o new pslb
refuses 2 "adaptive" design m.yaml -o new --sampler ode
refuses 2 'expected one of' design m.yaml -o new --sampler magic
