#!/usr/bin/env bash
# Data sets on the command line: psld info says what they are, names what is broken, refuses what is hostile.
set -eu
. "$(dirname "$0")/lib.bash"

# An IDX file of N grey images of 2 x 3 pixels, all 0, without the last CUT bytes: idx N CUT FILE
idx() {
    { printf '\000\000\010\003\000\000\000\0'"$(printf %02o "$1")"'\000\000\000\002\000\000\000\003' && head -c $((6 * $1 - $2)) /dev/zero; } >"$3"
}

# A PNG of one grey pixel.
dot() {
    printf '\211PNG\r\n\032\n\000\000\000\015IHDR\000\000\000\001\000\000\000\001\010\000\000\000\000\072\176\233U' >"$1"
    printf '\000\000\000\012IDATx\332ch\000\000\000\202\000\201\332E\010\073\000\000\000\000IEND\256B\140\202' >>"$1"
}

# skips COUNT ARGUMENTS: as quietly, but with so many warnings.
skips() {
    local count=$1
    shift
    "$psld" "$@" >"$logs/out" 2>"$logs/err" || fail "psld $*: $(cat "$logs/err")"
    [ "$(grep -c '^psld: warning: ' "$logs/err")" -eq "$count" ] || fail "psld $*: not $count warnings: $(cat "$logs/err")"
}

check "a folder of images with classes, as it is and in archives"
mkdir -p set/ant set/bee
dot set/ant/1.png
dot set/ant/2.png
dot set/bee/3.PNG
echo text >set/notes.txt
quietly info set
says "set: folder of images, 3 items of 1 x 1 pixels in grey"
says "2 classes: ant (2), bee (1)"
says "0 skipped"
quietly info set --json
json '. == {kind: "data", what: "folder of images", count: 3, images: true, shape: [1, 1, 1],
           classes: {ant: 2, bee: 1}, mixed: false, skipped: 0, checked: true}'
tar cf set.tar set
tar czf set.tar.gz set
for archive in set.tar set.tar.gz; do
    quietly info $archive
    says "$archive: tar archive of images, 3 items of 1 x 1 pixels in grey"
    says "2 classes: ant (2), bee (1)"
done
if python3 -c 'import zipfile' 2>/dev/null; then
    (cd set && python3 -m zipfile -c ../set.zip ant bee)
    quietly info set.zip
    says "set.zip: zip archive of images, 3 items"
else
    skip_part "zip archives: no Python to make one with"
fi

check "broken images are named and counted"
head -c 50 set/ant/1.png >set/bee/4.png
: >set/bee/5.png
skips 2 info set
says "3 items"
says "2 classes: ant (2), bee (1)"
says "2 skipped"
grep -q "skipped set/bee/4.png: a broken PNG" "$logs/err" || fail "$(cat "$logs/err")"
grep -q "skipped set/bee/5.png: an empty file" "$logs/err" || fail "$(cat "$logs/err")"
quietly info set --quick
says "0 skipped so far"
rm set/bee/4.png set/bee/5.png

check "names that lead out of an archive, and links in it"
mkdir inner
dot outside.png
dot inner/inside.png
dot inner/other.png
(cd inner && ln inside.png link.png && tar cPf ../bad.tar ../outside.png inside.png link.png "$PWD/other.png")
rm -r inner outside.png
skips 3 info bad.tar
says "1 items"
says "3 skipped"

check "IDX, and toys"
idx 5 0 five-images-idx3-ubyte
quietly info five-images-idx3-ubyte
says "IDX images, 5 items of 3 x 2 pixels in grey"
quietly info toy:moons --json
says '"shape": [2]'

check "what cannot be read"
mkdir none
idx 5 1 short-ubyte
echo text >text.tar
head -c $(($(wc -c <set.tar.gz) / 2)) set.tar.gz >cut.tar.gz
printf '\211PNG\r\n\032\n\000\000\000\015IHDR\000\001\206\240\000\001\206\240\010\000\000\000\000\2159T\024\000\000\000\012IDAT' >huge.png
mkdir huge
mv huge.png huge/huge.png
refuses 1 "none: a folder without images" info none
refuses 1 "short-ubyte: by its IDX header the file has 46 bytes, it has fewer" info short-ubyte
refuses 1 "text.tar: neither an archive" info text.tar
refuses 1 "cut.tar.gz" info cut.tar.gz
refuses 1 "huge/huge.png: an image of 100000 x 100000 pixels" info huge
refuses 1 "absent.tar: cannot read" info absent.tar
refuses 2 "toy:hare: no such toy set" info toy:hare

check "the real sets, where they are"
for set in cifar10/test.tar cats/cats64.tar mnist; do
    path=$(dirname "$0")/../../../shared/data/$set
    if [ -e "$path" ]; then quietly info "$path" --quick; else skip_part "no $path"; fi
done
