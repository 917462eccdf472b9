#!/usr/bin/env bash
# Event files of train.tensorboard, read by the tensorboard package: what is in them is what log.jsonl and samples/ have.
# PSLD_TENSORBOARD is a python that has the package, if python3 has it not.
set -eu
. "$(dirname "$0")/lib.bash"
small=(train.batch=16 model.nf=16 model.num_res_blocks=1 train.sample_every=10 train.evaluate_every=5 train.sample_count=16
    train.sample_nfe=4 train.checkpoint_every=7 train.checkpoint_minutes=0)

check "without the key there are none; with it each opening of a run has a file"
"$psld" train toy:moons -o plain train.steps=3 "${small[@]}" 2>/dev/null
[ ! -e plain/tensorboard ] || fail "event files that nobody asked for"
"$psld" train toy:moons -o run train.steps=20 train.tensorboard=true "${small[@]}" 2>/dev/null
"$psld" train toy:moons -o same train.steps=20 "${small[@]}" 2>/dev/null
[ "$(ls run/tensorboard | wc -l)" -eq 1 ] || fail "not one file: $(ls run/tensorboard)"
cmp -s run/model.safetensors same/model.safetensors || {
    # The configuration in the file differs by the key.
    "$psld" sample run -n 20 --seed 1 --nfe 10 -o a.npy >/dev/null
    "$psld" sample same -n 20 --seed 1 --nfe 10 -o b.npy >/dev/null
    cmp a.npy b.npy || fail "events change what is trained"
}
# As a process does that was killed after step 20: it goes on from the checkpoint of step 14.
rm -f run/checkpoints/step-000000020.safetensors
"$psld" train -o run train.steps=24 2>/dev/null
[ "$(ls run/tensorboard | wc -l)" -eq 2 ] || fail "not two files: $(ls run/tensorboard)"

check "they are not written over, nor where a link leads"
"$psld" train -o run 2>/dev/null
[ "$(ls run/tensorboard | wc -l)" -eq 2 ] || fail "a finished run has a file more"
rm -rf linked
"$psld" train toy:moons -o linked train.steps=2 "${small[@]}" 2>/dev/null
touch linked/tensorboard
refuses_run=0
"$psld" train -o linked train.steps=4 train.tensorboard=true >/dev/null 2>"$logs/err" || refuses_run=$?
[ $refuses_run -eq 1 ] && grep -q tensorboard "$logs/err" || fail "a file in place of the folder: $refuses_run, $(cat "$logs/err")"

python=${PSLD_TENSORBOARD:-python3}
"$python" -c 'import tensorboard' 2>/dev/null || {
    skip_part "reading the files: no tensorboard for $python (pip install tensorboard; PSLD_TENSORBOARD=its python)"
    exit 0
}

check "tensorboard reads the scalars of the log, and the pictures"
"$python" - run <<'PYTHON'
import json, math, os, sys
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
run = sys.argv[1]
events = EventAccumulator(run + "/tensorboard", size_guidance={"images": 0, "scalars": 0}).Reload()
log = [json.loads(line) for line in open(run + "/log.jsonl")]
assert [line["step"] for line in log] == list(range(1, 25)), "the log itself"
keys = {"train/loss": "loss", "train/gradient_norm": "norm", "train/learning_rate": "rate", "held_out/loss": "held_out",
        "held_out/loss_of_raw_weights": "held_out_raw"}
for tag, key in keys.items():
    # 15 to 20 were taken twice: what the second file has counts.
    expected = {line["step"]: line[key] for line in log if key in line}
    found = {event.step: event.value for event in events.Scalars(tag)}
    assert found.keys() == expected.keys(), (tag, sorted(found), sorted(expected))
    for step, value in expected.items():
        assert math.isclose(found[step], value, rel_tol=1e-5), (tag, step, found[step], value)
assert set(events.Tags()["scalars"]) >= set(keys) and "samples/distance" not in events.Tags()["scalars"]
pictures = {event.step: event for event in events.Images("samples")}
assert sorted(pictures) == [10, 20, 24], sorted(pictures)
for step, event in pictures.items():
    name = f"{run}/samples/step-{step:09d}.png"
    png = open(name, "rb").read()
    assert event.encoded_image_string == png, name
    assert (event.width, event.height) == (int.from_bytes(png[16:20], "big"), int.from_bytes(png[20:24], "big")), name
PYTHON
