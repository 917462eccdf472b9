#!/usr/bin/env bash
# psld guide, inpaint and restore: vectors with exact models, pictures with small networks, and what they refuse.
set -eu
. "$(dirname "$0")/lib.bash"

cat >m.yaml <<'EOT'
mixture: {weights: [0.3, 0.7], means: [[-0.8, 0.5, 0.2], [0.6, -0.2, -0.4]], scales: [0.3, 0.15]}
process: psld gamma=0.02
EOT
write_networks 3 cat dog
quietly convert c.yaml other.safetensors process="cld"
quietly convert c.yaml wide.safetensors data.size=16
quietly sample net.safetensors -n 2 --nfe 3 -o pictures
rm pictures/*.json

# Vectors, without anything but the program: samples of points that do not move.
point() { # FILE NUMBERS: a .npy of one vector
    echo "{mixture: {weights: [1], means: [[$2]], scales: 1e-6}, process: vp}" >point.yaml
    quietly sample point.yaml -n 1 --nfe 100 -o "$1"
}
point x.npy "0.6, 0, 0"
point mask.npy "-1, 1, 1"
point short.npy "1, 1"
point full.npy "1, 1, 1"
point empty.npy "-1, -1, -1"

shape_is() { # FILE SHAPE
    quietly info "$1" --json
    says "\"shape\": [$2]"
}

check "guide: a class, all classes, states"
quietly guide m.yaml --label 1 -n 20 --nfe 10 -o one.npy
says "20 samples of class 1 at scale 1, 10 evaluations each"
shape_is one.npy "20, 3"
quietly guide m.yaml --label all -n 20 --nfe 10 --state -o all.npy --json
json '.n == 40 and .nfe == 10'
shape_is all.npy "40, 6"
check "a sample of a class is the same alone and among all, for every batch and number of threads"
quietly guide m.yaml --label all -n 20 --nfe 10 -o all.npy
[ "$(tail -c 240 all.npy | cksum)" = "$(tail -c 240 one.npy | cksum)" ] || fail "class 1 differs"
for how in "--batch 3" "--threads 1"; do
    # shellcheck disable=SC2086
    quietly guide m.yaml --label 1 -n 20 --nfe 10 $how -o again.npy
    cmp one.npy again.npy || fail "$how"
done
quietly guide m.yaml --label 1 --sampler ode --tol 1e-3 -n 5 -o ode.npy

check "guide: networks, by number and by name; one row a class; folders"
quietly guide net.safetensors --classifier c.safetensors --label all --scale 3 -n 2 --nfe 3 -o rows.png
quietly guide net.safetensors --classifier c.safetensors --label dog -n 2 --nfe 3 -o dog.npy
says "2 samples of class dog at scale 3"
quietly guide net.safetensors --classifier c.safetensors --label 1 -n 2 --nfe 3 -o one.npy
cmp dog.npy one.npy || fail "dog is not class 1"
quietly guide net.safetensors --classifier c.safetensors --label all -n 2 --nfe 3 -o rows
[ "$(find rows -name '*.png' | wc -l)" -eq 4 ] || fail "rows: $(find rows)"

refuses 1 "rows/0: has more pictures than the 1 to be written here" guide net.safetensors --classifier c.safetensors --label all -n 1 --nfe 3 -o rows

check "classes whose names are numbers of others"
quietly convert c.yaml swapped.safetensors 'data.classes=["1", "0"]'
for classifier in c swapped; do
    quietly guide net.safetensors --classifier $classifier.safetensors --label all -n 2 --nfe 3 -o $classifier-all.npy
done
cmp c-all.npy swapped-all.npy || fail "all classes depend on their names"
quietly guide net.safetensors --classifier swapped.safetensors --label 0 -n 2 --nfe 3 -o named.npy
cmp named.npy one.npy || fail "the name 0 is not class 1"

check "guide refuses"
refuses 2 "no class given" guide m.yaml -o a.npy
refuses 2 "no output given" guide m.yaml --label 0
refuses 2 "label: expected 0 to 1, found 2" guide m.yaml --label 2 -o a.npy
refuses 2 'there is no class named "bird"' guide net.safetensors --classifier c.safetensors --label bird -o a.npy
refuses 1 "give --classifier" guide net.safetensors --label 0 -o a.npy
refuses 1 "is a classifier for recipe cld, the model has recipe psld: gamma is 0, not 0.02" guide net.safetensors --classifier other.safetensors --label 0 -o a.npy
refuses 1 "classifies data of 768 numbers, the model's have 192" guide net.safetensors --classifier wide.safetensors --label 0 -o a.npy
refuses 1 "is not a classifier" guide net.safetensors --classifier net.safetensors --label 0 -o a.npy
refuses 1 "a classifier has no samples" guide c.safetensors --classifier c.safetensors --label 0 -o a.npy
refuses 2 "pictures are written as .png" guide net.safetensors --classifier c.safetensors --label 0 -o a.svg
refuses 2 "needs a 2-D model" guide m.yaml --label 0 -o a.png

check "inpaint: vectors; known elements are returned with the same bits"
for method in resample replace authors; do
    all=11
    [ $method != resample ] || all=101
    quietly inpaint m.yaml --image x.npy --mask mask.npy --method $method -n 10 --nfe 11 -o s.npy
    says "10 samples of 1 vector, $all evaluations each"
    shape_is s.npy "10, 3"
    if [ $method != authors ]; then
        tail -c 120 s.npy | od -An -v -tx4 -w12 | awk '{print $1}' | sort -u >known
        [ "$(tail -c 12 x.npy | od -An -v -tx4 -w12 | awk '{print $1}')" = "$(cat known)" ] || fail "$method: $(cat known)"
    fi
done
quietly inpaint m.yaml --image x.npy --rect 1,0,2,1 --method replace --sampler ode --tol 1e-3 -n 5 -o s.npy
quietly inpaint m.yaml --image x.npy --mask mask.npy --label 1 --nfe 41 -n 5 -o s.npy

check "inpaint: pictures, into a folder and as strips"
quietly inpaint net.safetensors --image pictures --rect 0,4,8,4 -n 3 --nfe 3 --method replace -o filled
[ "$(find filled/samples -name '*.png' | wc -l)" -eq 6 ] || fail "samples: $(find filled)"
for name in strips.png originals/000001.png corrupted/000001.png; do [ -f filled/$name ] || fail "no $name"; done
quietly inpaint net.safetensors --image pictures/000000.png --mask pictures/000001.png -n 2 --nfe 5 -o strip.png
quietly inpaint net.safetensors --image pictures/000000.png --mask pictures -n 2 --nfe 5 --label cat --classifier c.safetensors -o strip.png

refuses 1 "filled/originals: has more pictures than the 1" inpaint net.safetensors --image pictures/000000.png --rect 0,4,8,4 -n 3 --nfe 3 -o filled

check "known pixels are returned unchanged"
for n in 0 1; do
    quietly inpaint net.safetensors --image filled/samples/00000$((3 * n)).png --rect 0,4,8,4 -n 1 --nfe 3 --method replace -o again
    cmp again/corrupted/000000.png filled/corrupted/00000$n.png || fail "picture $n"
done

check "masks of digits: IDX, nearest resize, above 0 is unknown, mask i for image i"
bytes() { printf '%b' "$(printf '\\%03o' "$@")"; }
{
    bytes 0 0 8 3 0 0 0 2 0 0 0 4 0 0 0 4
    bytes 1 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0
    bytes 0 0 0 0 0 0 0 0 0 0 0 0 9 255 128 1
} >masks-idx3-ubyte
quietly sample net.safetensors -n 2 --nfe 3 -o pictures.npy
quietly inpaint net.safetensors --image pictures.npy --mask masks-idx3-ubyte -n 1 --seed 7 --nfe 3 --method replace -o masked.npy
cmp -l <(tail -c 1536 pictures.npy) <(tail -c 1536 masked.npy) | awk '
    { e = int(($1 - 1) / 4); y = int(e % 64 / 8); x = e % 8; changed[e] = 1
      if (!(e < 192 ? y < 2 && x < 2 : y >= 6)) known = 1 }
    END { for (e in changed) n++; exit known || n != 3 * (4 + 16) }' || fail "other elements changed than the masks say"
quietly inpaint net.safetensors --image pictures --mask masks-idx3-ubyte -n 2 --nfe 3 -o masked
[ "$(find masked/samples -name '*.png' | wc -l)" -eq 4 ] || fail "samples: $(find masked)"
quietly sample net.safetensors -n 3 --nfe 3 -o three.npy
refuses 1 "has 2 masks for 3 images" inpaint net.safetensors --image three.npy --mask masks-idx3-ubyte -n 1 -o s2.npy
head -c 40 masks-idx3-ubyte >short-idx3-ubyte
refuses 1 "short-idx3-ubyte" inpaint net.safetensors --image pictures --mask short-idx3-ubyte -o s2.npy

check "every option of psld sample, and its default"
quietly inpaint m.yaml --image x.npy --mask mask.npy -n 3 -o s.npy --json
json '.sampler == "ancestral" and .nfe == 291'
quietly guide m.yaml --label 0 -n 3 -o s.npy --json
json '.sampler == "ancestral" and .nfe == 30'
quietly restore m.yaml --task denoise --noise 0.1 --image x.npy --quality draft -n 3 -o s.npy --json
json '.sampler == "ancestral" and .nfe == 12'
for command in "guide m.yaml --label 0" "inpaint m.yaml --image x.npy --mask mask.npy" "restore m.yaml --task denoise --noise 0.1 --image x.npy"; do
    # shellcheck disable=SC2086
    quietly $command --sampler ancestral --order 1 --eta 0.5 --grid rho --rho 5 --nfe 6 --end-sigma 0.02 --clip 2 -n 2 -o s.npy
    # shellcheck disable=SC2086
    refuses 2 "--quality chooses the sampler" $command --sampler em --quality best -o s2.npy
    # shellcheck disable=SC2086
    refuses 2 "order: the sampler em has only one order" $command --sampler em --order 2 -n 2 -o s2.npy
done

check "inpaint refuses"
refuses 2 "the unknown part is not given" inpaint m.yaml --image x.npy -o s.npy
refuses 2 "no image given" inpaint m.yaml --mask mask.npy -o s.npy
refuses 1 "nothing to do" inpaint m.yaml --image x.npy --mask empty.npy -o s2.npy
refuses 1 "expected a mask of 1 x 3, found 1 x 2" inpaint m.yaml --image x.npy --mask short.npy -o s2.npy
refuses 1 "expected vectors of 3, one or [n, ...], found 1 x 2" inpaint m.yaml --image short.npy --mask mask.npy -o s2.npy
refuses 1 "reaches beyond 8 x 8" inpaint net.safetensors --image pictures --rect 4,4,5,5 -o s2.png
refuses 2 "cannot repeat them" inpaint m.yaml --image x.npy --mask mask.npy --method resample --sampler ode -o s2.npy
refuses 2 "are for --method resample" inpaint m.yaml --image x.npy --mask mask.npy --method replace --jump 3 -o s2.npy
quietly convert net.yaml large.safetensors data.size=16
quietly sample large.safetensors -n 1 --nfe 2 -o large
refuses 1 "found 3 x 16 x 16; --fit resizes them" inpaint net.safetensors --image large/000000.png --rect 0,0,4,4 -o s2.png
refuses 1 "found 16 x 16; --fit resizes it" inpaint net.safetensors --image pictures --mask large/000000.png -o s2.png
quietly inpaint net.safetensors --image large/000000.png --mask large/000000.png --fit --nfe 3 --method replace -n 1 -o s2.png
"$psld" inpaint m.yaml --image x.npy --mask full.npy --nfe 21 -n 2 -o s.npy >"$logs/out" 2>"$logs/err" || fail "full mask"
grep -q "plain sampling" "$logs/err" || fail "full mask: $(cat "$logs/err")"

check "restore: vectors by every method"
for task in denoise "super-resolution --factor 3" "deblur --blur 0.7" "inpaint --mask mask.npy"; do
    for method in posterior isotropic reconstruction diffused; do
        # shellcheck disable=SC2086
        quietly restore m.yaml --task $task --method $method --noise 0.2 --image x.npy -n 5 --nfe 12 -o r.npy
        says "5 samples of 1 measurement by $method, 12 evaluations each"
        shape_is r.npy "5, 3"
    done
done
point y.npy "0.3"
point row.npy "1, 0.5, 0.25"
quietly restore m.yaml --task linear --matrix row.npy --image y.npy --degraded --noise 0.1 -n 5 --nfe 12 -o r.npy
quietly restore m.yaml --task linear --matrix row.npy --image x.npy --noise 0.1 -n 5 --nfe 12 --label 1 -o again.npy
quietly restore m.yaml --task denoise --noise 0.2 --image x.npy -n 9 --nfe 12 -o r.npy
quietly restore m.yaml --task denoise --noise 0.2 --image x.npy -n 9 --nfe 12 --batch 2 --threads 1 -o again.npy
cmp r.npy again.npy || fail "bits depend on the batch"

check "restore: pictures"
for task in "super-resolution --factor 2" "deblur --blur 1" colorize denoise "inpaint --rect 0,0,4,4"; do
    # shellcheck disable=SC2086
    quietly restore net.safetensors --task $task --noise 0.1 --image pictures -n 2 --nfe 3 --iterations 2 -o restored.png
done
quietly restore net.safetensors --task colorize --image pictures -n 1 --nfe 3 --iterations 2 -o restored
[ -f restored/corrupted/000001.png ] || fail "$(find restored)"

check "restore refuses"
refuses 2 "which --task?" restore m.yaml --image x.npy -o s2.npy
refuses 2 "--task: expected" restore m.yaml --task polish --image x.npy -o s2.npy
refuses 2 "3 channels" restore m.yaml --task colorize --image x.npy -o s2.npy
refuses 2 "expected one that divides" restore m.yaml --task super-resolution --factor 2 --image x.npy -o s2.npy
refuses 2 "needs --matrix" restore m.yaml --task linear --image x.npy -o s2.npy
refuses 1 "expected a matrix [rows, 3]" restore m.yaml --task linear --matrix short.npy --image x.npy -o s2.npy
refuses 1 "expected measurements of 1" restore m.yaml --task super-resolution --factor 3 --degraded --image x.npy -o s2.npy
