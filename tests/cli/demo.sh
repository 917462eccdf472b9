#!/usr/bin/env bash
# psld demo: the first thing a newcomer runs.
set -eu
. "$(dirname "$0")/lib.bash"

# Tiny networks stand for the models that come with the program.
cat >net.yaml <<'EOF'
process: psld gamma=0.02
data: {size: 8, channels: 1}
model: {name: ncsnpp, classes: 10, nf: 8, ch_mult: [1, 2], num_res_blocks: 1, attn_resolutions: [4]}
EOF
mkdir "$logs/models" "$logs/none"
quietly convert net.yaml "$logs/models/digits.safetensors"
cat >clf.yaml <<'EOF'
process: psld gamma=0.02
data: {size: 8, channels: 1}
model: {name: ncsnpp_clf, nf: 4, ch_mult: [1], num_res_blocks: 1, attn_resolutions: [], n_cls: 10}
EOF
quietly convert clf.yaml "$logs/models/digits-classifier.safetensors"
rm net.yaml clf.yaml
export PSLD_MODELS="$logs/models"

check "runs, says where the page is, and every file that the page names is there"
quietly demo -o page
says "page/index.html"
if command -v python3 >/dev/null; then
    sed 's,page/index,psld-demo/index,' "$logs/out" >"$logs/demo"
    "$(dirname "$0")/../../tools/check-docs" --output "psld demo" "$logs/demo" || fail "docs/README.md shows another output"
else
    skip_part "no Python to compare the output with README.md"
fi
says "em"
says "sscs"
says "ode"
says "64 digits"
says "one digit per label"
says "one digit of each class"
for row in labels guided completed; do grep -q "digits-$row.png" page/index.html || fail "no row digits-$row.png"; done
says "A network trained on toy:"
for sampler in em sscs ode; do grep -q "digits-$sampler.png" page/index.html || fail "no digits by $sampler"; done
[ -s page/index.html ] || fail "no index.html"
grep -q '</html>' page/index.html || fail "index.html has no end"
files=$(grep -oE '(src|href)="[^"#:]+"' page/index.html | cut -d '"' -f 2 | sort -u)
[ "$(wc -l <<<"$files")" -ge 3 ] || fail "the page names only: $files"
for file in $files; do
    [ -s "page/$file" ] || fail "index.html names $file, which is not there"
    case $file in
    *.png) [ "$(head -c 8 "page/$file" | od -An -tx1 | tr -d ' \n')" = 89504e470d0a1a0a ] || fail "$file is no PNG" ;;
    esac
done
[ "$(ls -A)" = page ] || fail "files beside the page: $(ls -A)"
[ "$(find page -name '.*' -type f | wc -l)" -eq 0 ] || fail "temporary files are left"

check "an output that cannot be"
echo text >file
refuses 1 "file: cannot make this folder" demo -o file
refuses 1 "cannot make this folder" demo -o file/page
refuses 2 'unexpected "page"' demo page
