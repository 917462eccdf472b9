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
"$embed" net.safetensors embedded.ppm 7 >"$logs/out" 2>"$logs/err" || fail "embed: $(cat "$logs/err")"
says "16 pictures, 50 evaluations each"
quietly sample net.safetensors -n 16 --sampler sscs --nfe 50 --seed 7 -o drawn.npy
[ "$(head -n 3 embedded.ppm)" = "$(printf 'P6\n32 32\n255')" ] || fail "no PPM of 32 x 32 pixels"
# The numbers of the .npy, [16][3][8][8], as the pixels of a sheet with 4 x 4 pictures.
tail -c $((16 * 3 * 8 * 8 * 4)) drawn.npy | od -An -v -tf4 -w4 | awk '
    { v = ($1 + 1) * 127.5; p[NR - 1] = v >= 255 ? 255 : v > 0 ? int(v + 0.5) : 0 }
    END {
        for (y = 0; y < 32; y++) for (x = 0; x < 32; x++) for (c = 0; c < 3; c++)
            print p[((int(y / 8) * 4 + int(x / 8)) * 3 + c) * 64 + (y % 8) * 8 + x % 8]
    }' >drawn
tail -c $((32 * 32 * 3)) embedded.ppm | od -An -v -tu1 -w1 | tr -d ' ' >embedded
cmp embedded drawn || fail "other pictures"

check "failures are said"
! "$embed" absent.safetensors x.pgm >"$logs/out" 2>"$logs/err" || fail "a model that is absent"
grep -q "absent.safetensors" "$logs/err" || fail "no word of absent.safetensors: $(cat "$logs/err")"
[ ! -e x.pgm ] || fail "x.pgm was made"
