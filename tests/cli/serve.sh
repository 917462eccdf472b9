#!/usr/bin/env bash
# psld serve by curl: what it answers is what the commands print, to the bit; runs are started, watched, stopped and resumed.
set -eu
. "$(dirname "$0")/lib.bash"
. "$(dirname "$0")/serve.bash"
write_mixture ring.yaml
digits=$PSLD_SOURCE/models/digits.safetensors
mkdir folder
cp ring.yaml folder/
serve_begin folder

check "recipe analysis has every number of psld recipe --json"
for recipe in psld vp cld told "psld gamma=0.3 beta=[0.1, 12]"; do
    for mode in hsm dsm; do
        # shellcheck disable=SC2086 # a preset and its overrides are words
        "$psld" recipe ${recipe// 12/12} --at 1e-5,0.1,1 --mode $mode --json >"$logs/cli"
        body=$(jq -n --arg recipe "$recipe" --arg mode $mode '{recipe: $recipe, at: [1e-5, 0.1, 1], mode: $mode}')
        post api/recipe "$body" 200
        jq -e --slurpfile cli "$logs/cli" '. as $all | .valid and ($cli[0] | to_entries | all($all[.key] == .value))' \
            "$logs/answer" >/dev/null || fail "$recipe, $mode: $(cat "$logs/answer")"
    done
done
post api/recipe '{"recipe": {"D": [[0.5, 0.2], [0, 0.5]], "Q": [[0, 0], [0, 0]], "mass": [1]}}' 200
answer '.valid == false and (.error | contains("D is not symmetric"))'
post api/recipe '{"recipes": ["psld", "nothing", "vp"], "curves": 16, "paths": 2}' 200
answer '(.recipes | length) == 3 and .recipes[0].valid and (.recipes[1].valid | not) and .recipes[2].valid'
answer '(.recipes[0].curves | (.t | length) == 16 and (.cov | length) == 2 and (.cov[1][1] | length) == 16)'
answer '.recipes[2].paths | (.forward | length) == 2 and (.reverse[1] | length) == (.t | length)'
get 'api/recipe?recipe=psld+gamma%3D0.02&at=0.5' 200
answer '.kernel[0].t == 0.5 and .D[0][0] == 0.01'

check "a pickle of a network is a model, another is none"
cp "$(dirname "$0")/../golden/foreign/edm-vp/network.pkl" folder/network.pkl
printf '\200\004}.' >folder/data.pkl
get api/files 200
answer '[.files[] | select(.path | endswith(".pkl")) | [.path, .kind]] | sort == [["data.pkl", "other"], ["network.pkl", "model"]]'
get 'api/model?path=network.pkl' 200
rm folder/*.pkl

check "a recipe in a file whose name has spaces, with overrides"
printf 'preset: told\n' >"folder/my own recipe.yaml"
post api/recipe '{"recipe": "my own recipe.yaml", "at": [0.5]}' 200
answer '.valid and .k == 3'
post api/recipe '{"recipe": "my own recipe.yaml beta=[0.1, 12]", "at": [0.5]}' 200
answer '.valid and .beta == [0.1, 12]'
rm "folder/my own recipe.yaml"

check "a recipe that is saved reads back as the same"
for recipe in psld "told kappa=0.1 factor=upper" vp; do
    post api/save "$(jq -n --arg recipe "$recipe" '{path: "saved.yaml", recipe: $recipe, replace: true}')" 200
    # shellcheck disable=SC2086
    "$psld" recipe $recipe --json | jq 'del(.name)' >"$logs/a"
    "$psld" recipe folder/saved.yaml --json | jq 'del(.name)' >"$logs/b"
    cmp "$logs/a" "$logs/b" || fail "$recipe"
done
post api/save '{"path": "saved.yaml", "recipe": "psld"}' 409
rm folder/saved.yaml

check "tables, files and models"
get api/about 200
answer '(.presets | map(.name) | contains(["psld", "vp"])) and (.keys | map(.name) | contains(["train.lr"]))'
get api/files 200
answer '.files | any(.path == "ring.yaml" and .kind == "model") and any(.path == "shipped:digits.safetensors")'
get 'api/model?path=ring.yaml' 200
answer '.kind == "exact" and .shape == [2] and (.density.values | length) == 96 * 96'
get 'api/model?path=shipped:digits.safetensors' 200
answer '.kind == "network" and .shape == [1, 28, 28] and .recipe.valid'
get 'api/file?path=ring.yaml' 200
cmp "$logs/answer" folder/ring.yaml || fail "a file comes otherwise"

check "samples have the bits of psld sample"
job '{"kind": "draw", "model": "shipped:digits.safetensors", "n": 6, "seed": 3, "nfe": 8}'
answer '.state == "done" and .arrays.samples == [6, 1, 28, 28] and .result.nfe == 8'
same_bits samples sample "$digits" -n 6 --seed 3 --nfe 8
get "api/jobs/$job/samples.png?columns=3" 200
[ "$(head -c 4 "$logs/answer" | tail -c 3)" = PNG ] || fail "no sheet"
job '{"kind": "draw", "model": "shipped:digits.safetensors", "first": 4, "n": 2, "seed": 3, "nfe": 8, "frames": 5}'
answer '.arrays.trajectory == [2, 5, 1, 28, 28]'
"$psld" sample "$digits" -n 6 --seed 3 --nfe 8 -o all.npy >/dev/null
get "api/jobs/$job/samples.npy" 200
cmp <(tail -c $((2 * 4 * 784)) all.npy) <(tail -c $((2 * 4 * 784)) "$logs/answer") || fail "first: other samples"
job '{"kind": "draw", "model": "ring.yaml", "n": 300, "sampler": "sscs", "nfe": 20, "process": {"preset": "vp"}}'
same_bits samples sample ring.yaml --sampler sscs --nfe 20 -n 300 --process vp
job '{"kind": "draw", "model": "shipped:digits.safetensors", "classifier": "shipped:digits-classifier.safetensors",
      "label": 3, "n": 2, "nfe": 6}'
same_bits samples guide "$digits" --classifier "${digits%.*}-classifier.safetensors" --label 3 -n 2 --nfe 6

check "watchers of a job get predictions"
post api/jobs '{"kind": "draw", "model": "shipped:digits.safetensors", "n": 512, "nfe": 200}' 202
before=$(jq -r .id "$logs/answer") # so that the next one waits
# Long enough that its stream wakes up meanwhile.
post api/jobs '{"kind": "draw", "model": "shipped:digits.safetensors", "n": 5, "nfe": 300}' 202
id=$(jq -r .id "$logs/answer")
curl -sN -H "$auth" --max-time 120 "$server/api/jobs/$id/events" >"$logs/events" &
stream=$!
for _ in $(seq 100); do ! grep -q '"state":"waiting"' "$logs/events" || break; sleep 0.1; done
ask DELETE "api/jobs/$before" 200
wait $stream
grep -A1 '^event: preview' "$logs/events" | grep '^data: ' | head -n 1 | cut -c7- >"$logs/answer"
[ -s "$logs/answer" ] || fail "no preview: $(head -c 500 "$logs/events")"
answer '.t > 0 and .t <= 1 and .first == 0 and .count == 5 and .columns == 3 and .shape == [1, 28, 28]'
jq -r .png "$logs/answer" | base64 -d >"$logs/preview"
[ "$(head -c 4 "$logs/preview" | tail -c 3)" = PNG ] || fail "no picture in the preview"

check "the command line that is told does the same"
job '{"kind": "draw", "model": "shipped:digits.safetensors", "label": 3, "n": 2, "nfe": 6, "seed": 4000000000,
      "classifier": "shipped:digits-classifier.safetensors", "scale": 2.5, "denoise": false}'
command=$(jq -r .command "$logs/job")
(eval "${command/#psld/\"$psld\"}") >/dev/null
get "api/jobs/$job/samples.npy" 200
cmp samples.npy "$logs/answer" || fail "$command"

check "pictures are completed, restored, encoded and interpolated as by the commands"
"$psld" sample "$digits" -n 1 --seed 9 --nfe 8 -o seven >/dev/null
cp seven/000000.png folder/seven.png
upload folder/seven.png
thing=$(jq -r .thing "$logs/answer")
answer '.shape == [1, 28, 28] and .format == "PNG"'
job '{"kind": "inpaint", "model": "shipped:digits.safetensors", "image": "seven.png", "rect": "0,14,28,14", "n": 2,
      "seed": 1, "nfe": 6, "repeats": 2}'
same_bits samples inpaint "$digits" --image folder/seven.png --rect 0,14,28,14 -n 2 --seed 1 --nfe 6 --repeats 2
first=$job
job "{\"kind\": \"restore\", \"task\": \"deblur\", \"blur\": 1.5, \"model\": \"shipped:digits.safetensors\",
      \"image\": \"$thing\", \"n\": 2, \"nfe\": 6}"
same_bits samples restore "$digits" --task deblur --blur 1.5 --image folder/seven.png -n 2 --nfe 6
job "{\"kind\": \"encode\", \"model\": \"shipped:digits.safetensors\", \"image\": \"$thing\", \"nfe\": 10}"
same_bits states encode "$digits" folder/seven.png --nfe 10
job "{\"kind\": \"interpolate\", \"model\": \"shipped:digits.safetensors\", \"a\": \"$thing\", \"nfe\": 10, \"n\": 3,
      \"b\": \"job:$first/samples/1\"}"
get "api/jobs/$first/samples.npy?first=1&count=1" 200
cp "$logs/answer" b.npy
same_bits samples interpolate "$digits" folder/seven.png b.npy --nfe 10 -n 3

check "what a command line names of the server alone is saved, and the command line does the same"
for saved in "first.npy job:$first/samples/1" "second.png $thing"; do
    body=$(jq -n --arg path "${saved% *}" --arg thing "${saved#* }" '{path: $path, thing: $thing}')
    post api/save "$body" 200
    post api/save "$body" 409
done
cmp folder/second.png folder/seven.png || fail "another upload"
command=$(jq -r .command "$logs/job")
command=${command//$thing/second.png}
command=${command//job:$first\/samples\/1/first.npy}
(cd folder && eval "${command/#psld/\"$psld\"}") >/dev/null
cmp folder/samples.npy cli.npy || fail "$command"
rm folder/samples.npy folder/first.npy folder/second.png

check "points diffuse to noise and come back"
job '{"kind": "animate", "points": [[0, 0], [2, 1], [-2, 1]], "sampler": "sscs", "nfe": 40, "n": 400, "frames": 20}'
answer '.result | (.times | length) == 20 and .distance < 6 * .floor and .k == 2'
answer '.arrays | .forward == [20, 400, 4] and .truth == [400, 2]'
job '{"kind": "animate", "model": "ring.yaml", "sampler": "ode", "n": 100, "frames": 8}'
answer '.result.reverse_times | length == 8 and .[0] == 1 and .[-1] == 0'

check "jobs are cancelled, freed, and refused in one line"
post api/jobs '{"kind": "draw", "model": "shipped:digits.safetensors", "n": 512, "nfe": 200}' 202
id=$(jq -r .id "$logs/answer")
sleep 0.3
ask DELETE "api/jobs/$id" 200
curl -sN -H "$auth" "$server/api/jobs/$id/events" >"$logs/events"
get "api/jobs/$id" 200
answer '.state == "cancelled"'
ask DELETE "api/jobs/$id" 200
get "api/jobs/$id" 404
for body in '{"kind": "draw", "model": "ring.yaml", "sampler": "sssc"}' '{"kind": "draw", "model": "nothing"}' \
    '{"kind": "draw", "model": "ring.yaml", "nfe": -1}' '{"kind": "draw", "model": "ring.yaml", "nme": 1}' \
    '{"kind": "draw", "model": "ring.yaml", "process": "/etc/passwd"}' '{"kind": "restore", "model": "ring.yaml"}'; do
    post api/jobs "$body" 422
    answer '(.error | length > 10) and (.error | contains("\n") | not)'
done
post api/jobs '{"kind": "nothing"}' 400
post api/jobs '{"kind": "draw", "model": "ring.yaml", "n": 30000}' 202
curl -sN -H "$auth" "$server/api/jobs/$(jq -r .id "$logs/answer")/events" >"$logs/events"
grep -q '"state":"failed".*at most 20000' "$logs/events" || fail "too many samples: $(cat "$logs/events")"

check "a run is started, watched, stopped and resumed; that of another process is only watched"
post api/runs '{"path": "run", "data": "toy:moons", "set": {"train.steps": 100000, "train.sample_every": 10,
    "train.batch": 16, "model.nf": 16, "model.num_res_blocks": 1, "train.sample_count": 16, "train.sample_nfe": 4}}' 202
answer '.running and .ours and (.command | contains("psld train"))'
timeout 300 curl -sN -H "$auth" "$server/api/run/events?path=run" >"$logs/events" &
watcher=$!
for _ in $(seq 2000); do ! grep -q '^event: sample' "$logs/events" || break; sleep 0.1; done
kill $watcher
for event in run log sample; do grep -q "^event: $event" "$logs/events" || fail "no event $event"; done
post api/runs '{"path": "run", "data": "toy:moons"}' 409
post api/run/resume '{"path": "run"}' 409
post api/run/stop '{"path": "run"}' 202
for _ in $(seq 100); do get 'api/run?path=run' 200; jq -e .running "$logs/answer" >/dev/null || break; sleep 0.1; done
answer '(.running | not) and .saved == .step and .step > 0 and .error == null and (.samples | length) > 0'
answer '.settings["train.batch"] == "16"'
step=$(jq .step "$logs/answer")
get "api/run/log?path=run&points=4" 200
answer "(.step | length) <= 4 and .last == $step and (.loss | length) == (.step | length)"
post api/run/stop '{"path": "run"}' 409
post api/run/resume '{"path": "run"}' 202
for _ in $(seq 100); do get 'api/run?path=run' 200; jq -e ".step > $step" "$logs/answer" >/dev/null && break; sleep 0.1; done
answer ".step > $step and .running"
post api/runs '{"path": "bad", "data": "toy:moon"}' 422
answer '.error | contains("did you mean \"moons\"")'
post api/runs '{"path": "bad", "data": "toy:moons", "set": {"data.path": "/etc"}}' 422
(cd folder && exec "$psld" train -o other toy:moons train.steps=100000 train.sample_every=0 2>/dev/null) &
other=$!
for _ in $(seq 100); do get api/runs 200; jq -e '.runs | any(.path == "other" and .running)' "$logs/answer" >/dev/null && break; sleep 0.1; done
answer '.runs | any(.path == "other" and .running and (.ours | not))'
post api/run/stop '{"path": "other"}' 403
kill -0 $other || fail "the run of another process was touched"
kill $other
wait $other || true

check "results of a sweep"
"$psld" sweep "$PSLD_SOURCE/configs/sweeps/mixture.yaml" -o folder/sweep number=32 nfe='[10]' samplers='[em]' \
    models="{ring: $PWD/ring.yaml}" >/dev/null
get 'api/sweep?path=sweep' 200
answer '(.metrics | index("swd") != null) and (.rows | length) > 0 and .rows[0].sampler == "em"'

check "Ctrl-C ends all within a second: the run has a checkpoint of its last step"
post api/jobs '{"kind": "draw", "model": "shipped:digits.safetensors", "n": 512, "nfe": 200}' 202
curl -sN -H "$auth" "$server/api/jobs/$(jq -r .id "$logs/answer")/events" >/dev/null &
stream=$!
began=$(date +%s%N)
serve_end
# Two seconds: other tests run beside this one.
[ $(($(date +%s%N) - began)) -lt 2000000000 ] || fail "it takes $(($(date +%s%N) - began)) ns to end"
wait $stream || true
for _ in $(seq 50); do "$psld" info folder/run --json >"$logs/out"; jq -e .running "$logs/out" >/dev/null || break; sleep 0.1; done
json '(.running | not) and .saved == .step'
