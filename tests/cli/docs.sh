#!/usr/bin/env bash
# README.md and docs/ say what the program does: tools/check-docs runs their examples.
set -eu
. "$(dirname "$0")/lib.bash"
root=$(cd "$(dirname "$0")/../.." && pwd)
python3 -c 'import difflib, json' 2>/dev/null || skip_all "no Python to read documents with"
export PSLD=$psld

check "check-docs finds wrong statements"
mkdir -p tools docs configs examples models
cp "$root/tools/check-docs" tools/
cp "$root/Makefile" .
write_mixture examples/two.yaml

# finds TEXT: check-docs names it in README.md, whose lines are the input.
finds() {
    cat >README.md
    if tools/check-docs >"$logs/out"; then fail "found nothing wrong in: $(cat README.md)"; fi
    says "$1"
}
finds "there is no configs/absent.yaml" <<<'`psld train configs/absent.yaml -o run`'
finds "psld sample has no option --absent" <<<'`psld sample examples/two.yaml --absent`'
finds "no command has an option --absent" <<<'`--absent` does nothing'
finds "psld has no command absent" <<<'`psld absent examples/two.yaml`'
finds "there is no key train.absent" <<<'`train.absent: 3`'
finds "make has no target absent" <<<'`make absent`'
finds "a link to absent.md" <<<'[a page](absent.md)'
finds "no heading of that page has this anchor" <<<$'# A heading\n\n[a part](#another-heading)'
finds "there is no src/absent.c" <<<'in src/absent.c'
finds "no folder has a file absent.c" <<<'in `absent.c`'
finds "at most 120 are allowed" <<<"$(printf 'word %.0s' {1..30})"
finds "neither <!-- run --> nor" <<<$'```\npsld recipe vp\n```'
finds "neither <!-- run --> nor" <<<$'text\n\n    psld recipe vp'
finds "a comment that check-docs does not know" <<<$'<!-- not run -->\n```\n$ psld recipe vp\n```'
finds "exit code 1" <<<$'```\n$ psld info absent.yaml\n```'
finds "exit code 0" <<<$'```\n$ psld recipe vp | head -1\npsld: no\n```'
finds "the output is another" <<<$'```\n$ psld sample examples/two.yaml -n 3 -o x.npy\n3 points of 2 dimensions\n```'
finds "examples/two.yaml has other lines" <<<$'```yaml\n# examples/two.yaml\nprocess: vp\n```'
page=docs/absent
echo "/* $page.md */" >examples/one.c
finds "examples/one.c:1: there is no $page.md" <<<'text'
rm examples/one.c

check "numbers, times and the rest of a long output may differ"
cat >README.md <<'MD'
<!-- replace: -n 30 => -n 3 -->
```
$ psld sample examples/two.yaml -n 30 --sampler em --nfe 7 -o x.npy
1234 samples of 5 dimensions, 99 evaluations each, 2 min 3 s: x.npy
$ psld recipe vp
vp: dz = -beta (D + Q) P z dt + sqrt(2 beta D) dw, 1 variable
...
```
MD
tools/check-docs >"$logs/out" || fail "$(cat "$logs/out")"
says "2 commands run, 0 marked as not run"

check "links to headings, and long rows of tables, are right"
printf '%s\n' '# On `D` and Q: two' '' '[here](#on-d-and-q-two)' '' "| $(printf 'word %.0s' {1..30}) |" >README.md
tools/check-docs --text >"$logs/out" || fail "$(cat "$logs/out")"

check "--fix writes the new output"
printf '%s\n' '```' '$ psld recipe vp | head -1' 'another line' '```' 'the end' >README.md
! tools/check-docs --fix >"$logs/out" || fail "found nothing"
tools/check-docs >"$logs/out" || fail "$(cat "$logs/out")"
[ "$(tail -n 1 README.md)" = "the end" ] || fail "$(cat README.md)"

check "README.md and docs/"
"$root/tools/check-docs"
