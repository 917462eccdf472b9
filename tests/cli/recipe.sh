#!/usr/bin/env bash
# psld recipe: what it prints, as text and as JSON, and what it draws.
set -eu
. "$(dirname "$0")/lib.bash"

check "every preset, as text and as JSON"
quietly recipe --list
presets=$(cut -d ' ' -f 1 "$logs/out")
for preset in vp cld psld psld-cifar10 psld-celeba64 psld-afhqv2 told; do
    grep -qx "$preset" <<<"$presets" || fail "--list has no $preset"
done
for preset in $presets; do
    quietly recipe "$preset"
    says "$preset: dz = "
    says "eigenvalues"
    says "damping"
    says "long enough"
    says "sigma_eff"
    quietly recipe "$preset" --json
    says "\"name\": \"$preset\""
    json '("name k D Q mass init beta stabiliser predicts eigenvalues damping distance long_enough sigma_max mode kernel" |
        split(" ")) - keys == []'
    json '[.D, .Q, .eigenvalues, .mass, .init | length] == [.k, .k, .k, .k - 1, .k - 1]'
    json '.long_enough == true and .mode == "hsm" and (.kernel | length) > 3'
    json '.k as $k | all(.kernel[] | .mean, .cov, .chol; length == $k and all(.[]; length == $k))'
    json '.kernel | all(.[]; .cov == (.cov | transpose))'
    json '[range(.k)] as $k | all(.kernel[]; . as $row | all($k[] as $a | $k[] as $b | [$a, $b];
        . as [$a, $b] | ([$k[] as $c | $row.chol[$a][$c] * $row.chol[$b][$c]] | add) - $row.cov[$a][$b] | fabs |
        . <= 1e-13 * ($row.cov[$a][$a] * $row.cov[$b][$b] | sqrt)))'
done

check "one line of JSON, numbers with 17 digits"
quietly recipe psld --json --at 1e-5
[ "$(wc -l <"$logs/out")" -eq 1 ] || fail "not one line"
grep -qE '"mean": \[\[0\.99999959680025[0-9]{3}, 0\.000159987136517[0-9]{5}\]' "$logs/out" || fail "digits: $(cat "$logs/out")"

check "vp against its closed form"
quietly recipe vp --json --at 0,1e-5,0.1,1
json '[.kernel[].t] == [0, 1e-5, 0.1, 1] and .k == 1 and .beta == [0.1, 20] and .mass == []'
json 'all(.kernel[]; (0.1 * .t + 19.9 * .t * .t / 2) as $b |
    all([.mean, (-$b / 2 | exp)], [.cov, (-$b | -expm1)], [.chol, (-$b | -expm1 | sqrt)];
        . as [$found, $wanted] | ($found[0][0] - $wanted | fabs) <= 1e-14 * ($wanted | fabs)))'

check "hsm and dsm"
quietly recipe cld --json --at 0,0.5 --mode dsm
json '.mode == "dsm" and .kernel[0].cov == [[0, 0], [0, 0]] and .predicts == ["m"]'
quietly recipe cld --json --at 0 --mode=hsm
json '.kernel[0].cov == [[0, 0], [0, 0.01]]'

check "overrides"
quietly recipe psld gamma=0.02 'beta=[0.1, 20]' name=mine kappa=0.1 --json
json '.name == "mine" and .beta == [0.1, 20] and .init == [0.1] and .D[0][0] == 0.01'
json '(.D[1][1] - 0.5025 | fabs) < 1e-15 and .damping == "critical"'
quietly recipe psld gamma=0.02 nu=10 m_inv=4 --json
says '"damping": "over"'
quietly recipe psld m_inv=40 --json
says '"damping": "under"'

check "a file, with D and Q or with drift and noise, and overrides of it"
cat >dq.yaml <<'EOF'
name: my-process
D: [[0.005, 0], [0, 0.50125]]
Q: [[0, -0.5], [0.5, 0]]
mass: [0.25]
beta: 8
init: [0.04]
stabiliser: 1e-9
EOF
quietly recipe psld --json name=x
cp "$logs/out" preset.json
quietly recipe dq.yaml --json name=x
cmp -s "$logs/out" preset.json || fail "the preset and its matrices differ"
cat >fg.yaml <<'EOF'
drift: [[-0.005, 2], [-0.5, -2.005]]
noise: [[0.1, 0], [0, 1.0012492197250393]]
mass: [0.25]
EOF
quietly recipe fg.yaml --json beta=4
json '.beta == 4 and [.D, .Q | flatten | length] == [4, 4]'
json '[[.D, .Q | flatten[]], [$wanted | .D, .Q | flatten[]]] | transpose | all(.[]; (.[0] - .[1] | fabs) < 1e-15)' \
    wanted=preset.json
echo '{preset: psld, gamma: 0.03}' >preset.yaml
quietly recipe preset.yaml --json
says '"name": "psld"'
json '.D[0][0] == 0.015'
quietly recipe ./dq.yaml beta=1e-3
says "too short"

check "two recipes, compared"
quietly recipe vp psld gamma=0.02 --json --at 0.5
json '[.recipes[].name] == ["vp", "psld"] and .recipes[1].D[0][0] == 0.01'
quietly recipe vp psld gamma=0.02
says "vp: dz = "
says "psld: dz = "

check "plots, .svg and .png"
quietly recipe psld --plot one.svg
says "plot: one.svg"
quietly recipe vp cld psld told --plot all.png --json
json '.recipes | length == 4'
grep -q '<svg' one.svg && grep -q '</svg>' one.svg || fail "one.svg is no SVG"
[ "$(head -c 8 all.png | od -An -tx1 | tr -d ' \n')" = 89504e470d0a1a0a ] || fail "all.png is no PNG"
[ "$(find . -name '.*' -type f | wc -l)" -eq 0 ] || fail "temporary files are left"

check "what a recipe is given by is printed with the digits that read back, and one mass is a list"
printf 'name: own\nD: [[0.05, 0, 0], [0, 0.1, 0], [0, 0, 0.3]]\nQ: [[0, -0.7, 0], [0.7, 0, 0.123456789012], [0, -0.123456789012, 0]]\nmass: 0.2\ninit: 0.1\n' >one.yaml
quietly recipe one.yaml
says "  D           [0.05, 0, 0], [0, 0.1, 0], [0, 0, 0.3]"
says "[0.7, 0, 0.123456789012]"
says "  mass        0.2, 0.2"
quietly recipe one.yaml --json
says '"mass": [0.20000000000000001, 0.20000000000000001]'
says '"init": [0.10000000000000001, 0.10000000000000001]'
refuses 1 "mass=heavy: expected a number" recipe one.yaml mass=heavy
