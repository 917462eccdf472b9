#!/usr/bin/env bash
# The page of a run: whole HTML, nothing from elsewhere, every picture that it names is there.
set -eu
. "$(dirname "$0")/lib.bash"
cat >clf.yaml <<'EOF'
process: cld
data: {path: "toy:moons", channels: 2, classes: ["0", "1"]}
model: {name: mlp, nf: 16, num_res_blocks: 1}
train: {batch: 16, steps: 20, lr: 1e-3, warmup: 5, ema: 0.9, checkpoint_every: 7, sample_every: 5, sample_count: 50,
        sample_nfe: 4, evaluate_every: 10, evaluate_count: 16}
EOF
run='a <b> & "c"'
"$psld" train clf.yaml -o "$run" >"$logs/out" 2>"$logs/err" || fail "$(cat "$logs/err")"

check "files that the page names are there, none is elsewhere"
page=$run/index.html
[ -s "$page" ] || fail "no index.html"
! grep -qiE 'https?://|<script|javascript' "$page" || fail "something from elsewhere: $(grep -iE 'http|script' "$page")"
names=$(grep -oE '(src|href)="[^"]+"' "$page" | cut -d '"' -f 2 | cut -d '?' -f 1 | sort -u)
[ "$(wc -l <<<"$names")" -eq 5 ] || fail "expected four pictures and a curve, found $names"
for name in $names; do [ -s "$run/$name" ] || fail "the page names $name, which is not there"; done

check "tags are closed, the folder's name is text"
if command -v python3 >/dev/null; then
    python3 -c "
from html.parser import HTMLParser
class P(HTMLParser):
    open, text = [], ''
    def handle_starttag(self, tag, attrs):
        if tag not in ('meta', 'img'): self.open.append(tag)
    def handle_endtag(self, tag): assert self.open.pop() == tag, tag
    def handle_data(self, data): self.text += data
p = P()
p.feed(open('''$page''').read())
assert not p.open and '''$run''' in p.text and 'Finished' in p.text, p.text" || fail "the page is not well formed"
else
    skip_part "the page's elements: no Python to read them with"
fi
