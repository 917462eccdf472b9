#!/usr/bin/env bash
# psld info: says what a file is.
set -eu
. "$(dirname "$0")/lib.bash"
write_mixture m.yaml

check "an exact model"
quietly info m.yaml
says "m.yaml: exact model, a mixture in 2 dimensions under the recipe psld (k = 2)"
quietly info m.yaml --json
python "
assert j == {'kind': 'exact model', 'dimensions': 2, 'process': 'psld', 'k': 2}, j"

check "a recipe"
echo '{name: mine, D: [[0.5]], Q: [[0]]}' >r.yaml
quietly info r.yaml
says "r.yaml: recipe mine, k = 1"
quietly info --json r.yaml
python "
assert j == {'kind': 'recipe', 'name': 'mine', 'k': 1}, j"

check "an array"
quietly sample m.yaml -n 3 --nfe 5 -o x.npy
quietly info x.npy
says "x.npy: array of float32 [3, 2]"
quietly info x.npy --json
python "
assert j == {'kind': 'array', 'type': 'float32', 'shape': [3, 2]}, j"
printf '\223NUMPY\001\000\066\000%-53s\n12345678' "{'descr':'|u1','fortran_order':False,'shape':(8,)}" >u.npy
quietly info u.npy --json
says '"type": "uint8", "shape": [8]'

check "what is none of these"
echo 'a: 1' >other.yaml
head -c 20 x.npy >cut.npy
echo 'text' >text.npy
mkdir folder.yaml
refuses 1 "other.yaml" info other.yaml
refuses 1 "cut.npy" info cut.npy
refuses 1 "text.npy: not a .npy file" info text.npy --json
refuses 1 "absent.npy: cannot read" info absent.npy
refuses 1 "absent.yaml: cannot read" info absent.yaml
refuses 1 "folder.yaml: cannot read" info folder.yaml
refuses 2 "expected one file, found 0" info
refuses 2 "expected one file, found 2" info m.yaml r.yaml
