#!/usr/bin/env bash
# examples/embed.c: a program of a user's own draws pictures from a model.
set -eu
. "$(dirname "$0")/lib.bash"
embed=$(dirname "$psld")/example_embed
[ -x "$embed" ] || skip_all "no example_embed beside the program"

cat >net.yaml <<'YAML'
process: psld gamma=0.02
data: {size: 8, channels: 3}
model: {name: ncsnpp, nf: 8, ch_mult: [1, 2], num_res_blocks: 1, attn_resolutions: [4]}
YAML
quietly convert net.yaml net.safetensors

check "the same pictures as psld sample draws"
"$embed" net.safetensors embedded.png 7 >"$logs/out" 2>"$logs/err" || fail "embed: $(cat "$logs/err")"
says "16 pictures, 50 evaluations each"
quietly sample net.safetensors -n 16 --sampler sscs --nfe 50 --seed 7 -o drawn.png
cmp embedded.png drawn.png || fail "other pictures"

check "failures are said"
! "$embed" absent.safetensors x.png >"$logs/out" 2>"$logs/err" || fail "a model that is absent"
grep -q "absent.safetensors" "$logs/err" || fail "no word of absent.safetensors: $(cat "$logs/err")"
[ ! -e x.png ] || fail "x.png was made"
