#!/usr/bin/env bash
# Bad input: one clear line, exit code 1 (failed) or 2 (wrong usage), nothing on stdout, no file left behind.
set -eu
. "$(dirname "$0")/lib.bash"
write_mixture m.yaml

# recipe TEXT YAML: `psld recipe` refuses the file with the text in its message, and so does a model that has it.
recipe() {
    printf '%s\n' "$2" >r.yaml
    check "recipe: $1"
    refuses 1 "$1" recipe r.yaml
    refuses 1 "$1" recipe r.yaml --json --plot r.svg
    refuses 1 "$1" sample m.yaml --process r.yaml -o x.npy
}

# line TEXT WORDS: the same for a recipe on the command line.
line() {
    local text=$1
    shift
    check "recipe: $*: $text"
    refuses 1 "$text" recipe "$@" --json
    refuses 1 "$text" sample m.yaml --process "$*" -o x.npy
}

# mixture TEXT YAML: the same for a model.
mixture() {
    printf '%s\nprocess: vp\n' "$2" >model.yaml
    check "mixture: $1"
    refuses 1 "$1" sample model.yaml -o x.npy
}

# usage TEXT WORDS: wrong options of `psld sample`.
usage() {
    local text=$1
    shift
    check "sample $*"
    refuses 2 "$text" sample m.yaml -n 5 -o x.npy "$@"
}

# ---- Matrices ----------------------------------------------------------------------------------------------------

recipe "D is not symmetric: D[1][0] = 0.2 and D[0][1] = 0.1, off by 0.1" '{D: [[1, 0.1], [0.2, 1]], Q: [[0, -1], [1, 0]]}'
recipe "D is not positive semidefinite: its smallest eigenvalue is -0.5" '{D: [[-0.5, 0], [0, 1]], Q: [[0, -1], [1, 0]]}'
recipe "Q is not skew-symmetric: Q[1][0] = 1 and Q[0][1] = 1" '{D: [[1, 0], [0, 1]], Q: [[0, 1], [1, 0]]}'
recipe "Q is not skew-symmetric: Q[0][0] = 1" '{D: [[1, 0], [0, 1]], Q: [[1, -1], [1, 0]]}'
recipe "noise does not reach every variable: it spans 1 of 2 directions and variable 0 gets 0" '{D: [[0, 0], [0, 1]], Q: [[0, 0], [0, 0]]}'
recipe "noise does not reach every variable" '{D: [[0, 0], [0, 0]], Q: [[0, -1], [1, 0]]}'
recipe "noise does not reach every variable: it spans 2 of 3" '{D: [[1, 0, 0], [0, 0, 0], [0, 0, 0]], Q: [[0, -1, 0], [1, 0, 0], [0, 0, 0]]}'
recipe 'unknown key "Dd"' '{Dd: 1, D: [[1]], Q: [[0]]}'
recipe "r.yaml:3: D[1]: expected" $'name: x\nD: [[1, 0],\n    [0]]\nQ: [[0, -1], [1, 0]]'
recipe "Q: expected" '{D: [[1, 0], [0, 1]], Q: [[0]]}'
recipe "Q: expected" '{D: [[1]], Q: 0}'
recipe "D: expected a k x k matrix" '{D: [], Q: []}'
recipe "D: expected a k x k matrix" '{D: 1, Q: 0}'
recipe "D: expected a k x k matrix as a list of rows, k from 1 to 8" '{D: [[1],[1],[1],[1],[1],[1],[1],[1],[1]], Q: [[0]]}'
recipe "mass: expected" '{D: [[1, 0], [0, 1]], Q: [[0, -1], [1, 0]], mass: [1, 1]}'
recipe "init: expected" '{D: [[1, 0], [0, 1]], Q: [[0, -1], [1, 0]], init: [1, 1]}'
recipe "D[0][0]: expected a finite number" '{D: [[.nan]], Q: [[0]]}'
recipe "D[0][0]: expected a finite number" '{D: [[inf]], Q: [[0]]}'
recipe "D[0][0]: expected a finite number" '{D: [[1e999]], Q: [[0]]}'
recipe 'D[0][0]: expected a number, found "abc"' '{D: [[abc]], Q: [[0]]}'
recipe "beta: expected a finite number" '{D: [[1]], Q: [[0]], beta: nan}'
recipe "mass[0]: expected a finite number" '{D: [[1, 0], [0, 1]], Q: [[0, -1], [1, 0]], mass: [-inf]}'
recipe "mass: expected positive numbers, found -1" '{D: [[1, 0], [0, 1]], Q: [[0, -1], [1, 0]], mass: [-1]}'
recipe "mass: expected positive numbers, found 0" '{D: [[1, 0], [0, 1]], Q: [[0, -1], [1, 0]], mass: [0]}'
recipe "init: expected finite numbers of at least 0, found -0.1" '{D: [[1, 0], [0, 1]], Q: [[0, -1], [1, 0]], init: -0.1}'
recipe "stabiliser: expected finite numbers of at least 0" '{D: [[1]], Q: [[0]], stabiliser: -1e-9}'
recipe "beta: expected a positive number, found 0" '{D: [[1]], Q: [[0]], beta: 0}'
recipe "beta: expected finite numbers of at least 0, found -1" '{D: [[1]], Q: [[0]], beta: [-1, 2]}'
recipe "beta: expected" '{D: [[1]], Q: [[0]], beta: [1, 2, 3]}'
recipe "factor: expected lower, upper or natural" '{D: [[1]], Q: [[0]], factor: middle}'
recipe "expected D and Q, or drift and noise" '{D: [[1]]}'
recipe "expected D and Q, or drift and noise" '{D: [[1]], Q: [[0]], drift: [[-1]]}'
recipe "expected D and Q, or drift and noise" '{}'
recipe "expected D and Q, or drift and noise" ''
# variance exploding: no drift at all, so N(0, 1) is not kept
recipe "do not keep N(0, diag(1, mass)) stationary" '{drift: [[0]], noise: [[1]]}'
recipe "not skew-symmetric, off by" '{drift: [[-1, 0], [0.3, -1]], noise: [[1, 0], [0, 1]]}'
recipe "no such preset" '{preset: nonsense}'

# ---- YAML --------------------------------------------------------------------------------------------------------

recipe 'key "D" stands twice' $'D: [[1]]\nD: [[1]]\nQ: [[0]]'
recipe "while parsing" '{D: [[1], Q: ['
recipe "r.yaml:" $'D: [[1]]\n\tQ: [[0]]'
recipe "alias *missing has no anchor before it" '{D: *missing, Q: [[0]]}'
recipe "alias *a stands inside the value that it names" '{D: &a [[1, *a]], Q: [[0]]}'
recipe "nested deeper than 64 levels" "D: $(printf '[%.0s' {1..100})$(printf ']%.0s' {1..100})"
bomb='a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]'
for i in {1..9}; do
    alias="*a$((i - 1))"
    bomb+=$'\n'"a$i: &a$i [$alias, $alias, $alias, $alias, $alias, $alias, $alias, $alias, $alias, $alias]"
done
recipe "more than 100000 values after expanding its aliases" "$bomb"

check "binary garbage, text that is not UTF-8, control characters"
head -c 4096 "$psld" >garbage.yaml
refuses 1 "garbage.yaml:" recipe garbage.yaml
refuses 1 "garbage.yaml:" sample garbage.yaml -o x.npy
refuses 1 "garbage.yaml:" info garbage.yaml
printf 'name: \377\376\n' >latin.yaml
refuses 1 "latin.yaml:" recipe latin.yaml
printf '"\\e[2J\\n": 1\n' >escape.yaml
refuses 1 "escape.yaml:1: unknown key" recipe escape.yaml

# ---- Recipes on the command line ---------------------------------------------------------------------------------

line "gamma = nu = 4: no mass gives critical damping" psld gamma=4 nu=4
line "beta: expected a positive number, found 0" psld beta=0
line "gamma, nu: expected numbers of at least 0" psld gamma=-1
line "m_inv: expected a positive number" psld m_inv=-4
line "m_inv: expected a positive number" psld m_inv=0
line 'unknown key "gama"' psld gama=1
line 'unknown key "gamma"' vp gamma=1
line "expected a finite number" psld gamma=nan
line 'expected a number, found "abc"' psld gamma=abc
line "psldd: neither a preset (vp, cld, psld" psldd
line "absent.yaml: cannot read" absent.yaml
line "absent/r.yaml: cannot read" absent/r.yaml
mkdir folder.yaml
line "folder.yaml: cannot read: Is a directory" folder.yaml

check "recipe: its own options"
refuses 2 "no recipe given" recipe
refuses 2 "unknown option --nonsense" recipe psld --nonsense
refuses 2 "--mode: expected hsm|dsm" recipe psld --mode=xsm
refuses 2 "--at: expected numbers" recipe psld --at 1,x
refuses 2 "--at: expected numbers" recipe psld --at ""
refuses 2 "[0, 1]" recipe psld --at 0.5,2
refuses 2 "[0, 1]" recipe psld --at=-1 --json
refuses 2 "[0, 1]" recipe psld --at nan
refuses 2 "--json takes no value" recipe psld --json=1
refuses 2 "--plot: expected a name that ends in .svg or .png" recipe psld --plot x.gif
refuses 2 "--plot needs a value" recipe psld --plot
refuses 1 "absent/x.svg: cannot write: No such file or directory" recipe psld --plot absent/x.svg
mkdir folder.svg
refuses 1 "folder.svg: cannot write: Is a directory" recipe psld --plot folder.svg

# ---- Models ------------------------------------------------------------------------------------------------------

mixture "weights: expected a sum of 1, found 0.9" 'mixture: {weights: [0.5, 0.4], means: [[0], [1]], scales: [1, 1]}'
mixture "weights[1]: expected a positive number, found -0.5" 'mixture: {weights: [1.5, -0.5], means: [[0], [1]], scales: [1, 1]}'
mixture "weights[0]: expected a finite number" 'mixture: {weights: [nan, 0.5], means: [[0], [1]], scales: [1, 1]}'
mixture "scales[1]: expected a number of at least 0, found -1" 'mixture: {weights: [0.5, 0.5], means: [[0], [1]], scales: [1, -1]}'
mixture "scales: expected" 'mixture: {weights: [0.5, 0.5], means: [[0], [1]], scales: [1]}'
mixture "weights: expected" 'mixture: {weights: [1], means: [[0], [1]], scales: [1, 1]}'
mixture "means[1]: expected" 'mixture: {weights: [0.5, 0.5], means: [[0, 0], [1]], scales: [1, 1]}'
mixture "means[1][0]: expected a finite number" 'mixture: {weights: [0.5, 0.5], means: [[0], [inf]], scales: [1, 1]}'
mixture "means: expected" 'mixture: {weights: [], means: [], scales: []}'
mixture "means[0]: expected a point" 'mixture: {weights: [1], means: [0], scales: [1]}'
mixture "means[0]: expected a point" 'mixture: {weights: [1], means: [[]], scales: [1]}'
mixture "scales is missing" 'mixture: {weights: [1], means: [[0]]}'
mixture "means is missing" 'mixture: {weights: [1], scales: [1]}'
mixture "weights is missing" 'mixture: {means: [[0]], scales: [1]}'
mixture "mixture is missing" 'name: x'
mixture 'unknown key "colour"' 'mixture: {weights: [1], means: [[0]], scales: [1], colour: red}'
mixture 'unknown key "mixtures"' 'mixtures: {}'
mixture "mixture: expected a map" 'mixture: 1'
check "a model without a process, or with a wrong one"
echo 'mixture: {weights: [1], means: [[0]], scales: [1]}' >model.yaml
refuses 1 "process is missing" sample model.yaml -o x.npy
echo 'process: model.yaml' >>model.yaml
refuses 1 "model.yaml" sample model.yaml -o x.npy
refuses 1 "absent.yaml: cannot read" sample absent.yaml -o x.npy
refuses 1 "folder.yaml: cannot read: Is a directory" sample folder.yaml -o x.npy
refuses 1 "r.yaml" sample r.yaml -o x.npy

# ---- Options of sample -------------------------------------------------------------------------------------------

usage '--nfe: expected a whole number of at least 1, found "0"' --nfe 0
usage '--nfe: expected a whole number of at least 1, found "abc"' --nfe abc
usage "--nfe: expected a whole number of at least 1" --nfe=-5
usage "--nfe: expected a whole number of at least 1" --nfe 1e3
usage "--nfe: expected a whole number of at least 1" --nfe 99999999999999999999
usage "--nfe: expected a whole number of at least 1" --nfe ""
usage "nfe" --nfe 1
usage "--nfe: ode chooses its steps itself" --sampler ode --nfe 10
usage "tol" --sampler ode --tol 0
usage "tol" --sampler ode --tol=-1e-3
usage "tol" --sampler ode --tol nan
usage '--tol: expected a' --sampler ode --tol small
usage "--tol is for ode alone" --tol 1e-3
usage "tol" --tol 0
usage "eps" --eps 0
usage "eps" --eps 1
usage "eps" --eps nan
usage "corrector" --corrector 1 --corrector-size 0
usage "corrector" --corrector 1 --sampler ode
usage '--sampler: expected em|sscs|ode|euler-ode|heun|dpm|collapsed|collapsed-heun|ipndm|ancestral|consistency, found "nonsense"' --sampler nonsense
usage 'grid: expected uniform, quadratic, sqrt, log, rho, inverse, times with commas between them, or sigma: and noise levels, found "cubic"' --grid cubic
usage "--start: expected prior|exact" --start middle
usage "unknown option --nonsense" --nonsense
usage "unknown option -x" -x
usage "--batch: expected a whole number of at least 1" --batch 0
usage "--threads: expected a whole number from 1 to 256" --threads 0
usage "--threads: expected a whole number from 1 to 256" --threads 257
usage "--threads: expected a whole number from 1 to 256" --threads
usage "--seed: expected a whole number from 0" --seed=-1
usage "--seed: expected a whole number from 0" --seed 18446744073709551616
usage "--number: expected a whole number of at least 1" -n 0
usage "--seed needs a value" --seed
usage "--state takes no value" --state=1
usage "expected one model, found 2" second.yaml
check "sample without a model or an output"
refuses 2 "expected one model, found 0" sample -o x.npy
refuses 2 "no output given" sample m.yaml

check "--z0 that is absent, no array, of another width, too short, or not finite"
refuses 1 "absent.npy: cannot read" sample m.yaml --z0 absent.npy -o x.npy
refuses 1 "m.yaml: not a .npy file" sample m.yaml --z0 m.yaml -o x.npy
npy() { # FILE SHAPE BYTES
    printf '\223NUMPY\001\000\066\000%-53s\n' "{'descr':'<f4','fortran_order':False,'shape':($2)}" >"$1"
    head -c "$3" /dev/zero >>"$1"
}
npy narrow.npy "3,2" 24
npy flat.npy "12," 48
npy none.npy "0,4" 0
npy short.npy "3,4" 47
npy good.npy "3,4" 48
refuses 1 "narrow.npy: expected states [n, 4]" sample m.yaml --z0 narrow.npy -o x.npy
refuses 1 "flat.npy: expected states [n, 4]" sample m.yaml --z0 flat.npy -o x.npy
refuses 1 "none.npy: expected states [n, 4]" sample m.yaml --z0 none.npy -o x.npy
refuses 1 "short.npy" sample m.yaml --z0 short.npy -o x.npy
refuses 1 "good.npy: has 3 states, -n asks for 4" sample m.yaml --z0 good.npy -n 4 -o x.npy
npy nan.npy "1,4" 12
printf '\000\000\300\177' >>nan.npy
refuses 1 "state 0 is not finite" sample m.yaml --z0 nan.npy --nfe 5 -o x.npy

# ---- Outputs -----------------------------------------------------------------------------------------------------

check "outputs that cannot be written, or are no kind that is known"
mkdir folder.npy
refuses 1 "absent/x.npy: cannot write: No such file or directory" sample m.yaml -o absent/x.npy
refuses 1 "folder.npy: cannot write: Is a directory" sample m.yaml -o folder.npy
refuses 1 "m.yaml/x.npy: cannot write: Not a directory" sample m.yaml -o m.yaml/x.npy
if [ "$(id -u)" -ne 0 ]; then
    mkdir locked
    chmod a-w locked
    refuses 1 "locked/x.npy: cannot write: Permission denied" sample m.yaml -o locked/x.npy
    refuses 1 "locked/x.svg: cannot write: Permission denied" recipe psld --plot locked/x.svg
    chmod u+w locked
else
    skip_part "folders that cannot be written: root may write all"
fi
refuses 2 "-o: expected a name that ends in .npy, .npz, .png or .svg, or a folder" sample m.yaml -o x.txt
refuses 2 "-o: expected a name that ends in .npy, .npz, .png or .svg, or a folder" sample m.yaml -o .npy
refuses 2 "-o: expected a name that ends in .npy, .npz, .png or .svg, or a folder" sample m.yaml -o ""
refuses 2 'found "two?lines"' sample m.yaml -o $'two\nlines'
cat >three.yaml <<'EOF'
mixture: {weights: [1], means: [[0, 0, 0]], scales: [1]}
process: vp
EOF
refuses 2 "a picture needs a 2-D model" sample three.yaml -o x.png
refuses 2 "a picture needs a 2-D model" sample three.yaml -o x.svg

check "more samples than memory has"
refuses 1 "out of memory" sample m.yaml -n 99999999999999 -o x.npy
refuses 2 "too large" sample m.yaml -n 999999999999999999 -o x.npy
