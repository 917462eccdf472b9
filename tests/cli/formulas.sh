#!/usr/bin/env bash
# Recipes with formulas: checks, the exchange, training on simulated paths, sampling, and what is refused.
set -eu
. "$(dirname "$0")/lib.bash"

cat >quartic.yaml <<'EOT'
{name: quartic, H: x^4/8 + m^2/2, D: [[0, 0], [0, 1 + a/(1 + x^2)]], Q: [[0, -1], [1, 0]], constants: {a: 0.5},
 beta: 6, steps: 200}
EOT
cat >thermostat.yaml <<'EOT'
{name: nose-hoover, data: [x], auxiliary: [p, xi], H: x^2/2 + p^2/2 + (xi - 1)^2/4, steps: 1500,
 D: [[0, 0, 0], [0, 1, 0], [0, 0, 0]], Q: [[0, -1, 0], [1, 0, 2*p], [0, -2*p, 0]]}
EOT

check "a recipe in two variables, and its exchange"
quietly recipe quartic.yaml --exchange
says "skew-symmetric"
says "Q from the drift, 128 points a variable"
quietly recipe quartic.yaml --exchange-out Q.npy --points 64 --plot page.svg --json
json '.residual >= 0 and .residual < 1e-12 and .skewness == 0 and .variables == ["x", "m"] and .data == 1'
json '.grid_rate[3] > 1.9 and .grid_rate[3] < 2.1 and .exchange.points == 64'
json '.exchange.known >= 0 and .exchange.known < 1e-6 and .exchange.current < 1e-10'
[ "$(stat -c %s Q.npy)" -gt $((64 * 64 * 4 * 8)) ] || fail "Q.npy is too small"
grep -q "<svg" page.svg

check "in three"
quietly recipe thermostat.yaml --exchange --points 32 --json
json '.residual < 1e-12 and .exchange.skewness == 0 and (.grid_points | length) == 3'

check "refused, with place and size"
cat >wrong.yaml <<'EOT'
{name: wrong, H: x^2/2 + m^2/2, D: [[0, 0], [0, 1]], drift: [m, -2*x - m]}
EOT
refuses 1 "residual of the Fokker-Planck equation is" recipe wrong.yaml
refuses 1 "of its terms at x = " recipe wrong.yaml
refuses 1 "expected Q or drift, not both" recipe quartic.yaml 'drift=[m, x - m]'
refuses 1 "D is not positive semidefinite: eigenvalue" recipe quartic.yaml 'D=[[0, 0], [0, 1 - x^2]]'
refuses 1 "divides by zero" recipe quartic.yaml 'H=x^2/0'
refuses 1 '"y" at character 1 is no variable' recipe quartic.yaml 'H=y^2'
refuses 1 "nested more than 100 deep" recipe quartic.yaml "H=$(printf '(%.0s' $(seq 9000))"
refuses 1 "more than 10000 characters" recipe quartic.yaml "H=x$(printf '+x%.0s' $(seq 5001))"
refuses 1 'unknown key "Dee"' recipe quartic.yaml 'Dee=3'
refuses 1 "a recipe with formulas is shown alone" recipe quartic.yaml vp
refuses 1 "expected a recipe with formulas" recipe vp --exchange
refuses 2 "expected a power of two" recipe quartic.yaml --exchange --points 100

check "a small run: trained, interrupted, continued, the same bits; sampled"
cat >gentle.yaml <<'EOT'
{name: gentle, H: x^2/2 + m^2/2 + 0.2*cos(x), D: [[0, 0], [0, 1 + 0.5/(1 + x^2)]], Q: [[0, -1], [1, 0]], beta: 3,
 steps: 100}
EOT
cat >run.yaml <<'EOT'
process: gentle.yaml
data: {path: "toy:moons"}
model: {name: mlp, nf: 16, num_res_blocks: 1, embedding_type: positional}
train: {batch: 16, steps: 6, warmup: 2, checkpoint_every: 3, sample_every: 0, evaluate_every: 3, evaluate_count: 16}
EOT
"$psld" train run.yaml -o whole >/dev/null 2>"$logs/err" || fail "$(cat "$logs/err")"
"$psld" train run.yaml -o parts train.steps=3 train.schedule=constant >/dev/null 2>"$logs/err" || fail "$(cat "$logs/err")"
"$psld" train -o parts train.steps=6 >/dev/null 2>"$logs/err" || fail "$(cat "$logs/err")"
grep -q "cos(x)" whole/config.yaml || fail "the recipe is not in the configuration"
rm gentle.yaml # the run needs it no more
quietly info whole --json
json '[.. | strings] | any(. == "gentle")'
for sampler in "em --nfe 60" "ode --tol 1e-2"; do
    # shellcheck disable=SC2086
    quietly sample whole --sampler $sampler -n 40 --seed 3 --threads 1 -o one.npy
    # shellcheck disable=SC2086
    quietly sample whole --sampler $sampler -n 40 --seed 3 --threads 2 --batch 16 -o two.npy
    # shellcheck disable=SC2086
    quietly sample parts --sampler $sampler -n 40 --seed 3 -o parts.npy
    cmp one.npy two.npy || fail "$sampler: other bits with another batch"
    cmp one.npy parts.npy || fail "$sampler: other bits of the continued run"
done
quietly sample whole --sampler em --nfe 60 -n 10 --state -o state.npy
quietly sample whole --sampler em --nfe 60 -n 10 --z0 state.npy -o again.npy
quietly sample whole -n 10 -o points.png

check "what such a model is not for"
refuses 1 "such models work with psld sample and psld info only" guide whole --label 1 -n 2 -o no.npy
refuses 1 "such models work with psld sample and psld info only" encode whole again.npy -o no.npy
refuses 1 "such models work with psld sample and psld info only" score whole --z state.npy --t state.npy -o no.npy
refuses 2 "expected em or ode" sample whole --sampler dpm -n 2 -o no.npy
refuses 2 "eta: has no meaning" sample whole --eta 0.5 -n 2 -o no.npy
cat >odd.yaml <<'EOT'
process: thermostat.yaml
data: {path: "toy:moons"}
model: {name: mlp, nf: 16, num_res_blocks: 1, embedding_type: positional}
train: {batch: 15, steps: 2}
EOT
refuses 1 "train.batch: expected a multiple of 2" train odd.yaml -o no
refuses 1 "train.loss, weighting, norm and times" train odd.yaml train.batch=16 train.norm=l1 -o no
