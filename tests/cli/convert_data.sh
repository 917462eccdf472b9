#!/usr/bin/env bash
# psld data: what a set is, and the same pixels after every conversion and back.
set -eu
. "$(dirname "$0")/lib.bash"

# images N FILE: an IDX file of N grey images of 3 x 2 pixels, no two alike; labels N FILE: their classes 0, 1, 2, 0, ...
images() {
    printf '\000\000\010\003\000\000\000\0'"$(printf %02o "$1")"'\000\000\000\002\000\000\000\003' >"$2"
    for i in $(seq $((6 * $1))); do printf '\'"$(printf %03o $((i * 7 % 256)))" >>"$2"; done
}
labels() {
    printf '\000\000\010\001\000\000\000\0'"$(printf %02o "$1")" >"$2"
    for i in $(seq 0 $(($1 - 1))); do printf '\00'$((i % 3)) >>"$2"; done
}
size_of() { od -An -tu1 -j16 -N8 "$1" | awk '{print ($3*256+$4) " x " ($7*256+$8)}'; }
# The bytes of an array in a .npy file, without its header.
body() { tail -c "$2" "$1" | od -An -tu1 -v; }

images 12 a-images-idx3-ubyte
labels 12 a-labels-idx1-ubyte

check "look, count, choose"
quietly data a-images-idx3-ubyte
says "a-images-idx3-ubyte: IDX images, 12 items of 3 x 2 pixels in grey"
says "  0                    4"
says "none broken"
quietly data a-images-idx3-ubyte --class 0,2 -n 5
says "5 selected"
quietly data a-images-idx3-ubyte --per-class 3 --class 1 --json
json '.selected == 3 and .count == 12 and .classes == {"0": 4, "1": 4, "2": 4} and .broken == []'

check "to a folder and back: the same pixels"
quietly data a-images-idx3-ubyte -o folder
says "12 items of 1 x 2 x 3: folder"
[ "$(find folder -name '*.png' | wc -l)" -eq 12 ] || fail "$(find folder)"
[ -f folder/1/000004.png ] || fail "item 4 is not in its class: $(find folder)"
[ "$(ls -A | grep -c psld-data)" -eq 0 ] || fail "something is left behind: $(ls -A)"
quietly data folder --class 0 -o back.npy
quietly data a-images-idx3-ubyte --class 0 -o straight.npy
cmp back.npy straight.npy || fail "other pixels: $(body back.npy 24) $(body straight.npy 24)"
[ "$(body straight.npy 24 | head -1 | awk '{print $1, $2}')" = "7 14" ] || fail "not those of the file: $(body straight.npy 24)"

check "through .npz, a tar and a folder again: the same, class names too"
mkdir pets
cp -r folder/0 pets/ant
cp -r folder/1 "pets/bee & <wasp>"
tar cf pets.tar pets
quietly data pets.tar -o pets.npz
quietly data pets.npz --json
json '.classes == {"ant": 4, "bee & <wasp>": 4} and .shape == [1, 2, 3]'
quietly data pets.npz -o again
diff -r <(cd pets && find . -type d | sort) <(cd again && find . -type d | sort) || fail "other folders"
quietly data again -o again.npz
cmp pets.npz again.npz || fail "other arrays"

check "colour: channels last in arrays, and back"
write_networks 3
quietly sample net.safetensors -n 4 --nfe 2 -o colour
quietly data colour -o colour.npy
quietly info colour.npy --json
json '.type == "uint8" and .shape == [4, 8, 8, 3]'
quietly data colour.npy -o copied
for i in 0 1 2 3; do cmp colour/00000$i.png copied/00000$i.png || fail "picture $i"; done
quietly data colour --channels 1 --size 4 -n 2 -o grey.npy
quietly info grey.npy --json
json '.shape == [2, 4, 4]'

check "sheets: a row of ten for each class, the first N, magnified"
quietly data a-images-idx3-ubyte -o sheet.png
[ "$(size_of sheet.png)" = "52 x 14" ] || fail "$(size_of sheet.png)"
quietly data a-images-idx3-ubyte -n 4 --zoom 3 -o sheet.png
[ "$(size_of sheet.png)" = "24 x 18" ] || fail "$(size_of sheet.png)"

check "toys and numbers"
quietly data toy:moons -n 20 -o moons.npy
quietly info moons.npy --json
json '.type == "float32" and .shape == [20, 2]'
quietly data moons.npy -o moons.svg
quietly data toy:moons -o moons.npz --json
json '.n == 1000'
refuses 2 "these items are numbers; write .npz or .npy" data moons.npy -o moons
refuses 2 "--zoom is for sheets of pictures" data moons.npy --zoom 2 -o plot.png

check "broken files are listed and left out; sizes that differ are named, a sheet shows them"
mkdir mixed
cp colour/000000.png mixed/a.png
head -c 60 colour/000001.png >mixed/b.png
cp colour/000002.png mixed/c.png
for out in "" "-o good" "-o good.npz" "-o good.png"; do
    # shellcheck disable=SC2086
    "$psld" data mixed $out >"$logs/out" 2>"$logs/err" || fail "$out: $(cat "$logs/err")"
    says "1 broken, left out:"
    says "  b.png"
done
[ "$(ls good | xargs)" = "000000.png 000002.png" ] || fail "$(ls good)"
cmp mixed/c.png good/000002.png || fail "another picture"
rm mixed/b.png
quietly data folder -n 1 -o one
cp one/0/000000.png mixed/d.png 2>/dev/null || cp one/000000.png mixed/d.png
refuses 2 "give a size" data mixed -o sizes
quietly data mixed -o sizes.png
quietly data mixed --size 8 --fit stretch -o sizes

check "existing files are not overwritten, and mistakes leave no output"
refuses 1 "folder: has files already" data a-images-idx3-ubyte -o folder
refuses 1 "moons.svg" data a-images-idx3-ubyte -o moons.svg/
mkdir empty
quietly data a-images-idx3-ubyte -o empty/
[ -f empty/0/000000.png ] || fail "$(find empty)"
refuses 1 'no class "9"' data a-images-idx3-ubyte --class 9 -o nine
refuses 1 "--class: colour has no classes" data colour --class cat -o cats
refuses 2 "--fit and --resample need --size" data colour --fit crop -o x.npy
refuses 2 "found \"x.jpg\"" data colour -o x.jpg
refuses 1 "absent: cannot read" data absent -o x.npy

check "the real sets, where they are"
for set in mnist cifar10/test.tar cats/cats64.tar; do
    path=$(dirname "$0")/../../../shared/data/$set
    if [ ! -e "$path" ]; then
        skip_part "no $path"
        continue
    fi
    quietly data "$path" -n 30 -o real
    quietly data real -o back.npz
    quietly data "$path" -n 30 -o straight.npy
    says "30 items"
    quietly data "$path" --quick -o real.png
    rm -r real
done
