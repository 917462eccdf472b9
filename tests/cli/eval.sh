#!/usr/bin/env bash
# psld eval: sets, features, statistics, models, likelihood, pages, and what is refused.
set -eu
. "$(dirname "$0")/lib.bash"
write_mixture m.yaml
write_networks
quietly sample m.yaml -n 1200 --nfe 30 --seed 1 -o a.npy
quietly sample m.yaml -n 1100 --nfe 30 --seed 2 -o b.npy
quietly sample net.safetensors -n 24 --sampler em --nfe 2 --seed 1 -o one
quietly sample net.safetensors -n 20 --sampler em --nfe 2 --seed 2 -o two

check "features given as .npy: all metrics, as text and JSON"
quietly eval a.npy b.npy --metric fid,kid,prc,swd
for word in "frechet distance " "kernel distance (kid)" precision recall "sliced wasserstein"; do says "$word"; done
! grep -q '(fid)' "$logs/out" || fail "the distance of points in a plane is called fid"
quietly eval a.npy b.npy --metric fid,kid,prc,swd --kid-subsets 5 --json
json '.n_a == 1200 and .n_b == 1100 and .dim == 2 and .fid == .frechet_distance'
json '0 <= .fid and .fid < 0.05 and (.kid | fabs) < 0.05 and all(.precision, .recall; 0.9 < . and . <= 1)'
quietly eval a.npy a.npy --json
json '0 <= .fid and .fid < 1e-6'

check "statistics there and back give the same distance"
quietly eval b.npy --statistics-out b.npz
says "b.npy: 1100 points"
quietly eval a.npy b.npy --json
cp "$logs/out" first
quietly eval a.npy b.npz --json
json '(.fid - $first.fid | fabs) <= 1e-9 and .n_b == 0' first=first

check "images: a classifier's features, labelled as not FID; the same for any number of threads"
quietly eval one two --metric fid,prc --weights c.safetensors
says "(NOT fid)"
says "(not FID)"
for threads in 1 2; do quietly eval one --features-out f$threads.npy --weights c.safetensors --threads $threads; done
cmp f1.npy f2.npy || fail "features depend on threads"
quietly eval two --features-out g.npy --weights c.safetensors
quietly eval one two --metric fid,is --weights c.safetensors --json
cp "$logs/out" images
json '(has("fid") | not) and 1 <= .is and .is <= 10 and .is_in_order >= 1 and (.features | contains("not FID"))'
quietly eval f1.npy g.npy --json
json '($images.frechet_distance - .frechet_distance | fabs) <= 1e-9 * ([1, .fid] | max)' images=images
quietly eval one one --weights c.safetensors --json
json '(.frechet_distance | fabs) <= 1e-6 and .n_a > 0 and .n_a < .dim + 9'

check "a model against data: samples are drawn; a page is made"
quietly eval m.yaml b.npy -n 500 --sampler sscs --nfe 20 --metric fid,swd --json
json '.n_a == 500 and .n_b == 1100 and .nfe == 20 and (.fid | fabs) < 0.1'
quietly eval m.yaml b.npy -n 500 --sampler ode --tol 0.1 --ode-group 500 --json
cp "$logs/out" whole
quietly eval m.yaml b.npy -n 500 --sampler ode --tol 0.1 --ode-group 9223372036854775807 --json
json '.fid == $whole.fid and .fid >= 0 and .nfe > 0' whole=whole # groups without end are all samples
quietly eval net.safetensors two -n 20 --sampler em --nfe 2 --seed 2 --weights c.safetensors --page page.png --json
json '(.frechet_distance | fabs) <= 1e-6' # the same samples as in the folder
quietly eval net.safetensors two -n 4 --weights c.safetensors --json
cp "$logs/out" default
json '.sampler == "ancestral" and .nfe == 30'
quietly sample net.safetensors -n 4 -o normal # the same sampler
quietly eval normal two --weights c.safetensors --json
json '($default.frechet_distance - .frechet_distance | fabs) <= 1e-9' default=default
walk="--sampler ancestral --order 1 --eta 0.5 --grid rho --rho 5 --nfe 6 --end-sigma 0.02 --clip 2 --quantize floor"
# shellcheck disable=SC2086
quietly sample net.safetensors -n 4 $walk -o walked
# shellcheck disable=SC2086
quietly eval net.safetensors walked -n 4 $walk --weights c.safetensors --json # every option of psld sample
json '(.frechet_distance | fabs) <= 1e-6 and .nfe == 6'
quietly eval net.safetensors two -n 4 --quality draft --weights c.safetensors
says "4 samples by ancestral, 12 evaluations each"
[ "$(head -c 8 page.png | od -An -tx1 | tr -d ' \n')" = 89504e470d0a1a0a ] || fail "page.png is no PNG"

check "likelihood: text and JSON; one recipe as good as another"
quietly eval m.yaml a.npy --metric nll -n 64
says "bits per dimension"
quietly eval m.yaml a.npy --metric nll -n 64 --process vp --json
cp "$logs/out" vp
quietly eval m.yaml a.npy --metric nll -n 64 --process cld --json
json '($vp.bits_per_dim - .bits_per_dim | fabs) < 0.05 and .bound and ($vp.bound | not)' vp=vp
json '.divergence == "exact" and .bits_per_dim_error > 0 and .n == 64'
cp "$logs/out" cld
for batch in 1 1085102592571150095 9223372036854775807; do
    quietly eval m.yaml a.npy --metric nll -n 64 --process cld --batch $batch --json
    json '.bits_per_dim != null and [.bits_per_dim, .nfe, .n] == ($cld | [.bits_per_dim, .nfe, .n])' cld=cld
done
quietly eval net.safetensors one --metric nll -n 3 --tol 1e-2 --json
json '.divergence == "hutchinson" and (.bits_per_dim | isnormal) and .dim == 64'

check "images of other sizes become what a model takes, or what --size says, and it is said"
# tells TEXT ARGUMENTS: the program succeeds, and all that it says on stderr is one line with the text.
tells() {
    local text=$1
    shift
    "$psld" "$@" >"$logs/out" 2>"$logs/err" || fail "psld $*: $(cat "$logs/err")"
    [ "$(wc -l <"$logs/err")" -eq 1 ] && grep -qF -- "$text" "$logs/err" || fail "psld $*: on stderr: $(cat "$logs/err")"
}
sed "s/size: 8/size: 16/" net.yaml >net16.yaml
sed "s/size: 8/size: 16/" c.yaml >c16.yaml
quietly convert net16.yaml net16.safetensors
quietly convert c16.yaml c16.safetensors
quietly sample net16.safetensors -n 4 --nfe 2 -o large
mkdir mixed
for file in one/*.png; do cp "$file" "mixed/b-$(basename "$file")"; done
cp "$(find large -name '*.png' | sort | head -1)" mixed/a.png
brought="images were resized to 8 x 8 in grey, from the largest square in the middle"
tells "large: $brought" eval net.safetensors large --metric nll --tol 1e-2 --json
json '.brought_to == 8 and .fit == "crop" and .n == 4 and (.bits_per_dim | isnormal)'
tells "mixed: $brought" eval net.safetensors mixed --metric nll --tol 1e-2 -n 2
quietly eval net.safetensors one --metric nll --tol 1e-2 -n 2 --json
json 'has("brought_to") | not'
tells "mixed: $brought" eval net.safetensors mixed -n 20 --sampler em --nfe 2 --weights c.safetensors
tells "mixed: images were resized to 8 x 8, from" eval mixed one --size 8 --weights c.safetensors --json
json '.brought_to == 8 and .n_a == 25'
tells "one: images were resized to 16 x 16, stretched" eval one --size 16 --fit stretch --features-out sized.npy --weights c16.safetensors
quietly eval one two --size 8 --weights c.safetensors

check "refusals, in one line and without a number"
wanted="pt_inception-2015-12-05-6726825d.pth from the releases of pytorch-fid and of torch-fidelity"
refuses 1 "$wanted" eval one two
refuses 1 "$wanted" eval one two --weights nowhere.pth
refuses 1 "is a score network" eval one two --weights net.safetensors
refuses 1 "kid needs at least 1000 images, the set has 24" eval one two --metric kid --weights c.safetensors
refuses 1 "is needs at least 30 images, the set has 24" eval one two --metric is --splits 30 --weights c.safetensors
refuses 1 "features of different width: f1.npy has" eval f1.npy a.npy
refuses 1 "features of different width" eval f1.npy b.npz
refuses 1 "has only mean and covariance" eval a.npy b.npz --metric kid
quietly sample m.yaml -n 1 --nfe 4 -o single.npy
refuses 1 "kid needs at least 2000 points, the set has 1200" eval a.npy b.npy --metric kid --kid-size 2000
refuses 1 "fid needs at least 2 points, the set has 1" eval single.npy b.npy
refuses 1 "a covariance needs at least 2 points, the set has 1" eval single.npy --statistics-out x.npz
for list in nll,fid fid,nll fid,nll,is; do refuses 2 "nll cannot be combined" eval m.yaml b.npy --metric $list; done
refuses 2 "expected some of fid" eval a.npy b.npy --metric fid,nlls
refuses 2 "second set" eval a.npy --metric fid
refuses 2 "expected some of fid" eval a.npy b.npy --metric fod
refuses 1 "is needs images" eval a.npy b.npy --metric is
refuses 1 "nowhere" eval a.npy nowhere.npy
refuses 2 "nothing to evaluate" eval
refuses 2 "nll: a.npy is not a model" eval a.npy b.npy --metric nll
refuses 2 "one set" eval a.npy b.npy --features-out x.npy
refuses 2 ".npy" eval a.npy --features-out x.txt
refuses 1 "cannot write" eval a.npy --features-out nowhere/x.npy
mkdir empty
refuses 1 "empty" eval empty two --weights c.safetensors
refuses 1 "images of different sizes: one has 1 x 8 x 8, large 1 x 16 x 16" eval one large --weights c.safetensors
refuses 1 "the classifier takes images of 1 x 8 x 8" eval large large --weights c.safetensors
refuses 2 "give one of --quality and --sampler" eval m.yaml b.npy --sampler em --quality best
refuses 2 "--tol is for ode alone" eval m.yaml b.npy --tol 1e-3
refuses 2 "order: the sampler em has only one order" eval m.yaml b.npy --sampler em --order 2
refuses 2 "ode chooses its steps itself" eval m.yaml b.npy --sampler ode --nfe 5
refuses 1 "a classifier has no samples" eval c.safetensors b.npy
refuses 1 "nll: a classifier has no likelihood" eval c.safetensors one --metric nll
refuses 2 "mixed: image 0 has 16 x 16 pixels, others 8 x 8; give a size" eval mixed mixed --weights c.safetensors
refuses 2 "--size: data are resized to the model's images" eval net.safetensors large --size 4
refuses 2 "expected crop|stretch" eval one two --size 4 --fit squeeze
if python3 -c 'import numpy' 2>/dev/null; then
    python3 - <<'PY'
import numpy as np
x = np.load('a.npy')
np.savez('no-sigma.npz', mu=x.mean(0))
x[7, 1] = np.nan
np.save('nan.npy', x)
np.save('none.npy', x[:0])
PY
    check "a model's own data.fit is taken, unless --fit says otherwise"
    python3 -c "
import numpy as np
np.save('wide.npy', np.random.default_rng(0).integers(0, 256, (2, 8, 20), np.uint8))"
    sed "s/size: 8/fit: stretch, size: 8/" net.yaml >stretch.yaml
    quietly convert stretch.yaml stretch.safetensors
    tells "of each the largest square" eval net.safetensors wide.npy --metric nll --tol 1e-2 --json
    cp "$logs/out" cropped
    tells "stretched" eval stretch.safetensors wide.npy --metric nll --tol 1e-2 --json
    json '.fit == "stretch" and .nll != $cropped.nll' cropped=cropped
    tells "of each the largest square" eval stretch.safetensors wide.npy --metric nll --tol 1e-2 --fit crop --json
    json '.nll == $cropped.nll and .nll != null' cropped=cropped

    check "images as arrays: [n, h, w], [n, h, w, c] and [n, c, h, w], .npy and .npz, are the folder's"
    quietly eval one two --weights c.safetensors --json
    cp "$logs/out" folders
    "$psld" sample net.safetensors -n 24 --sampler em --nfe 2 --seed 1 -o one.npy >/dev/null
    python3 - <<'PY'
import numpy as np
x = np.floor((np.load('one.npy')[:, 0] + 1) * 127.5 + 0.5).clip(0, 255).astype(np.uint8)
np.save('planes.npy', x)
np.save('last.npy', x[..., None])
np.save('first.npy', x[:, None])
np.savez('images.npz', images=x)
np.save('five.npy', x[:, None, None])
np.save('two-channels.npy', x.reshape(24, 2, 4, 8)[:, :, :, :5])
np.save('whole-numbers.npy', x.astype(np.int64))
PY
    for array in planes.npy last.npy first.npy images.npz; do
        quietly eval $array two --weights c.safetensors --json
        json '.n_a == 24 and ($folders.frechet_distance - .frechet_distance | fabs) < 1e-9' folders=folders
    done
    refuses 1 "five.npy: u8 of rank 5, expected images [n, height, width]" eval five.npy two --weights c.safetensors
    refuses 1 "with 1 or 3 channels" eval two-channels.npy two --weights c.safetensors
    refuses 1 "whole numbers, expected u8 images or float numbers" eval whole-numbers.npy two --weights c.safetensors
    refuses 1 "sigma" eval a.npy no-sigma.npz
    refuses 1 "nan.npy: number 1 of item 7 is not finite" eval nan.npy b.npy
    refuses 1 "is not finite" eval b.npy nan.npy --metric prc
    refuses 1 "none.npy: the array has no items" eval none.npy b.npy
else
    skip_part "images as arrays, broken features: no NumPy to write them with"
fi
