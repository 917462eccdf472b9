# What the command-line tests share. Each runs in a fresh, empty folder with the program's path in PSLD, says what it
# checks, and ends at the first thing that is not so.
set -eu
export LC_ALL=C
psld=${PSLD:?where the program is}
logs=$(mktemp -d "${TMPDIR:-/tmp}/psld-logs.XXXXXX")
trap 'rm -rf "$logs"' EXIT

check() { printf -- '- %s\n' "$*"; }

# skip_all WHY: nothing of this test can be run. skip_part WHAT: a part cannot. tools/run-tests counts and lists both.
skip_all() {
    printf 'skipped: %s\n' "$*"
    exit 77
}
skip_part() { printf -- '- skipped: %s\n' "$*"; }

fail() {
    printf 'FAILED: %s\n' "$*" >&2
    exit 1
}

# quietly ARGUMENTS: the program must succeed without a word on stderr. Its output is in $logs/out.
quietly() {
    local code=0
    "$psld" "$@" >"$logs/out" 2>"$logs/err" || code=$?
    [ "$code" -eq 0 ] || fail "psld $*: exit code $code: $(cat "$logs/err")"
    [ ! -s "$logs/err" ] || fail "psld $*: on stderr: $(cat "$logs/err")"
}

# says TEXT: the last output has it, as it is.
says() { grep -qF -- "$1" "$logs/out" || fail "no \"$1\" in: $(cat "$logs/out")"; }

# Everything in the working folder, by name and content.
listing() { find . -mindepth 1 \( -type f -exec cksum {} + -o -print \) | sort; }

# refuses CODE TEXT ARGUMENTS: the program must end with the code and one line on stderr that has the text, print nothing
# else, and leave the working folder as it was.
refuses() {
    local wanted=$1 text=$2 code=0
    shift 2
    listing >"$logs/before"
    timeout 60 "$psld" "$@" >"$logs/out" 2>"$logs/err" </dev/null || code=$?
    listing >"$logs/after"
    [ "$code" -eq "$wanted" ] || fail "psld $*: exit code $code, expected $wanted: $(cat "$logs/err")"
    [ ! -s "$logs/out" ] || fail "psld $*: on stdout: $(head -c 300 "$logs/out")"
    [ "$(wc -l <"$logs/err")" -eq 1 ] || fail "psld $*: not one line on stderr: $(cat "$logs/err")"
    grep -q '^psld: ' "$logs/err" || fail "psld $*: does not begin with \"psld: \": $(cat "$logs/err")"
    grep -qF -- "$text" "$logs/err" || fail "psld $*: no \"$text\" in: $(cat "$logs/err")"
    ! grep -q '[[:cntrl:]]' "$logs/err" || fail "psld $*: control characters on stderr"
    cmp -s "$logs/before" "$logs/after" || fail "psld $*: left behind: $(diff "$logs/before" "$logs/after")"
}

# json CONDITION [NAME=FILE ...]: the last output is one JSON value, and the condition, a filter of jq, is true of it. What
# a file has is $NAME there. In jq null is less than any number: let an upper bound come with a lower one or with fabs.
command -v jq >/dev/null || fail "no jq to read JSON with; tools/bootstrap test installs it"
json() {
    local condition=$1 files=() given='' file
    shift
    for file; do
        files+=(--slurpfile "${file%%=*}" "${file#*=}")
        given+="\$${file%%=*}[0] as \$${file%%=*} | "
    done
    ! grep -qE '[:[,] *-?([Nn]a[Nn]|[Ii]nf)' "$logs/out" || fail "not JSON: $(head -c 1000 "$logs/out")"
    jq -es "${files[@]}" "${given}if length != 1 then error(\"not one value\") else .[0] end | ($condition)" "$logs/out" \
        >/dev/null 2>"$logs/jq" || fail "not so: $condition: $(cat "$logs/jq") in $(head -c 1000 "$logs/out")"
}

# floats FILE N: the last N numbers of a .npy file of float32, one per line.
floats() { tail -c $(($2 * 4)) "$1" | od -An -v -t f4 -w4; }

write_mixture() { # FILE: two modes in two dimensions
    cat >"$1" <<'EOF'
mixture: {weights: [0.25, 0.75], means: [[-1, 0.5], [1, -0.5]], scales: [0.1, 0.2]}
process: psld gamma=0.02
EOF
}

# write_networks [CHANNELS NAME...]: net.safetensors and c.safetensors, a score network and a classifier of images of
# 8 x 8, untrained: of grey ones in 10 classes unless told the channels and the names of classes; and net.yaml and c.yaml.
write_networks() {
    local channels=${1:-1} names=${*:2}
    cat >net.yaml <<EOF
process: psld gamma=0.02
data: {size: 8, channels: $channels, classes: [${names// /, }]}
model: {name: ncsnpp, nf: 8, ch_mult: [1, 2], num_res_blocks: 1, attn_resolutions: [4]}
EOF
    sed "s/ncsnpp,/ncsnpp_clf, n_cls: $(($# > 1 ? $# - 1 : 10)),/" net.yaml >c.yaml
    quietly convert net.yaml net.safetensors
    quietly convert c.yaml c.safetensors
}
