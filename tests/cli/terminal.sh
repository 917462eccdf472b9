#!/usr/bin/env bash
# On a terminal: one line that fits its width, is cleared before anything else, and colours where they are wanted.
set -eu
. "$(dirname "$0")/lib.bash"
command -v script >/dev/null && script -qec true /dev/null >/dev/null 2>&1 || skip_all "no script(1) to make a terminal with"

cat >small.yaml <<'EOF'
process: cld
data: {path: "toy:moons", channels: 2}
model: {name: mlp, nf: 16, num_res_blocks: 1}
train: {batch: 16, steps: 200, lr: 1e-3, warmup: 5, checkpoint_every: 0, sample_every: 0, evaluate_every: 20, evaluate_count: 16}
EOF

# on_terminal COLUMNS WORDS: what the program sends to a terminal of this width is in $logs/terminal.
on_terminal() {
    local columns=$1
    shift
    TERM=${TERM_KIND:-xterm} script -qec "stty cols $columns; '$psld' $*" /dev/null </dev/null >"$logs/terminal" 2>&1 ||
        fail "psld $* on $columns columns: $(cat "$logs/terminal")"
}

# widest: the longest piece between returns that belongs to the line of progress, without its escape sequences.
widest() {
    tr '\r' '\n' <"$logs/terminal" | sed 's/\x1b\[[0-9;]*[mK]//g' | awk '/^(\[[#-]*\] )?step / && length > most { most = length } END { print most + 0 }'
}

check "the line of progress fits 40, 80 and 200 columns"
for columns in 40 80 200; do
    on_terminal $columns train small.yaml -o run$columns
    most=$(widest)
    [ "$most" -gt 12 ] || fail "no line of progress on $columns columns: $(cat -v "$logs/terminal")"
    [ "$most" -lt $columns ] || fail "a line of $most on $columns columns: $(cat -v "$logs/terminal")"
done
grep -q "gradient" "$logs/terminal" || fail "200 columns show less than all"
grep -qF -- "[####" "$logs/terminal" || fail "no bar"
# every line of progress erases what was longer before it, and the last one is gone before "done"
! tr '\r' '\n' <"$logs/terminal" | grep -a "step .* left" | grep -qv $'\x1b\\[K' || fail "stale characters"
grep -qa $'\x1b\\[Kdone: 200 steps' "$logs/terminal" || fail "the line is not cleared: $(cat -v "$logs/terminal" | tail -3)"

check "colours, unless NO_COLOR says otherwise; a dumb terminal gets plain lines"
grep -q $'\x1b\\[36m' "$logs/terminal" || fail "no colour"
NO_COLOR=1 on_terminal 80 train small.yaml -o plain
! grep -q $'\x1b\\[[0-9;]*m' "$logs/terminal" || fail "colour in spite of NO_COLOR"
TERM_KIND=dumb on_terminal 80 train small.yaml -o dumb
! grep -q $'\x1b' "$logs/terminal" || fail "escape sequences for a dumb terminal"

check "warnings and errors have lines of their own"
script -qec "stty cols 80; TERM=xterm NO_COLOR=1 '$psld' train small.yaml -o run80 train.lr=7" /dev/null </dev/null >"$logs/terminal" 2>&1 || true
grep -qa "^psld: run80: belongs to another configuration" "$logs/terminal" || fail "$(cat -v "$logs/terminal")"

check "Ctrl-C says what was kept and how to go on"
write_mixture m.yaml
cat >sweep.yaml <<'EOF'
name: long
models: {two: m.yaml}
samplers: [em]
nfe: [50, 100000]
number: 20000
metrics: swd
EOF
"$psld" sweep sweep.yaml -o swept >/dev/null 2>"$logs/err" &
pid=$!
for _ in $(seq 400); do
    [ ! -s swept/results.jsonl ] || break
    kill -0 $pid 2>/dev/null || break
    sleep 0.05
done
kill -INT $pid
wait $pid || true
grep -q "^psld: interrupted: swept keeps 1 of 2 cells; run the same command to continue with the others$" "$logs/err" || fail "$(cat "$logs/err")"
