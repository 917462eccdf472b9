#!/usr/bin/env bash
# What others may have put into files and folders: names of other files, links, control characters, and what two
# processes, or one that was killed, do to one folder.
set -eu
. "$(dirname "$0")/lib.bash"
write_mixture m.yaml
write_networks

# edit_config FILE FROM TO: the configuration inside a model file with FROM replaced by TO; nothing else changes.
edit_config() {
    python3 - "$@" <<'PYTHON'
import json, struct, sys
path, before, after = sys.argv[1:]
bytes = open(path, 'rb').read()
size = struct.unpack('<Q', bytes[:8])[0]
header = json.loads(bytes[8:8 + size])
header['__metadata__'].pop('psld.checksum', None) # as somebody does who means harm
config = header['__metadata__']['psld.config']
assert before in config, config
header['__metadata__']['psld.config'] = config.replace(before, after.encode().decode('unicode_escape'))
text = json.dumps(header).encode()
text += b' ' * (-len(text) % 8)
open(path, 'wb').write(struct.pack('<Q', len(text)) + text + bytes[8 + size:])
PYTHON
}

if python3 -c 'import json' 2>/dev/null; then
    check "a model file names no other file: neither is it shown nor waited for"
    printf 'secret line\nanother\n' >secret
    mkfifo pipe
    printf 'name: mine\nD: [[0.5]]\nQ: [[0]]\nbeta: 8\n' >mine.yaml
    for name in ./secret pipe mine.yaml "$PWD/mine.yaml" /etc/passwd; do
        cp net.safetensors bad.safetensors
        edit_config bad.safetensors 'process: psld gamma=0.02' "process: $name"
        refuses 1 "expected a preset" sample bad.safetensors -n 1 -o x.png
        refuses 1 "expected a preset" convert bad.safetensors x.safetensors
        refuses 1 "expected a preset" bench net bad.safetensors
        code=0
        timeout 60 "$psld" info bad.safetensors >"$logs/out" 2>"$logs/err" || code=$?
        [ "$code" -ne 124 ] || fail "info waits for $name"
        grep -q "with a configuration that cannot be used" "$logs/out" || fail "info does not say why: $(cat "$logs/out")"
        ! grep -q "secret line\|root:" "$logs/out" "$logs/err" || fail "shows what is in $name"
    done
    rm pipe

    check "a flipped bit anywhere in the weights or the configuration is seen by every command"
    for place in 0.02 0.2 0.5 0.7 0.9 0.999; do
        python3 - net.safetensors flipped.safetensors $place <<'PYTHON'
import struct, sys
bytes = bytearray(open(sys.argv[1], 'rb').read())
header = 8 + struct.unpack('<Q', bytes[:8])[0]
at = header + int(float(sys.argv[3]) * (len(bytes) - header))
bytes[at] ^= 1 << at % 8
open(sys.argv[2], 'wb').write(bytes)
PYTHON
        refuses 1 "flipped.safetensors: is damaged: its checksum is" info flipped.safetensors
        refuses 1 "is damaged" sample flipped.safetensors -n 1 -o x.png
        refuses 1 "is damaged" convert flipped.safetensors x.safetensors
        refuses 1 "is damaged" bench net flipped.safetensors
    done
    sed 's/gamma=0.02/gamma=0.03/' net.safetensors >flipped.safetensors
    ! cmp -s net.safetensors flipped.safetensors || fail "nothing was changed"
    refuses 1 "is damaged" sample flipped.safetensors -n 1 -o x.png
    refuses 1 "is damaged" info flipped.safetensors
    mkdir whole
    "$psld" train toy:moons -o whole train.steps=2 model.nf=8 >"$logs/out" 2>&1 || fail "$(cat "$logs/out")"
    checkpoint=$(ls whole/checkpoints/*.safetensors | tail -1)
    sed 's/gamma=0.25/gamma=0.26/' "$checkpoint" >flipped.safetensors
    ! cmp -s "$checkpoint" flipped.safetensors || fail "nothing was changed"
    cp flipped.safetensors "$checkpoint"
    refuses 1 "is damaged" sample whole --use raw -n 1 -o x.npy
    quietly sample whole -n 1 --nfe 4 -o x.npy
    rm -r whole x.npy flipped.safetensors

    check "files without a checksum, as others write them, open as before"
    cp net.safetensors other.safetensors
    edit_config other.safetensors 'size: 8' 'size: 8'
    quietly sample other.safetensors -n 1 --nfe 2 -o x.png
    quietly sample net.safetensors -n 1 --nfe 2 -o y.png
    cmp x.png y.png || fail "other pictures without a checksum"
    rm x.png y.png

    check "paths of data, of initial weights and of caches in a model file are not opened"
    cp net.safetensors paths.safetensors
    mkfifo pipe
    edit_config paths.safetensors 'data:' 'train: {init: pipe}\ndata:'
    edit_config paths.safetensors 'size: 8' 'size: 8\n  path: pipe\n  cache: pipe'
    timeout 60 "$psld" info paths.safetensors >"$logs/out" 2>&1 || fail "info: $(cat "$logs/out")"
    timeout 60 "$psld" sample paths.safetensors -n 1 --nfe 2 -o x.png >"$logs/out" 2>&1 || fail "$(cat "$logs/out")"
    timeout 60 "$psld" convert paths.safetensors x.safetensors >"$logs/out" 2>&1 || fail "$(cat "$logs/out")"
    rm pipe x.png x.safetensors

    check "a configuration that the user names may name a recipe, which becomes part of the model"
    sed 's/^process:.*/process: mine.yaml/' net.yaml >with.yaml
    quietly convert with.yaml with.safetensors
    rm mine.yaml
    quietly sample with.safetensors -n 1 --nfe 2 -o x.png
    rm x.png
else
    skip_part "model files that mean harm: no Python to write them with"
fi

check "two processes cannot draw into one folder: the manifest is that of the pictures"
"$psld" sample net.safetensors -n 6 --nfe 400 --seed 1 -o both >"$logs/first" 2>&1 &
first=$!
for _ in $(seq 600); do [ ! -e both/samples.json ] || break; sleep 0.05; done
if kill -STOP "$first" 2>/dev/null; then
    code=0
    "$psld" sample net.safetensors -n 6 --nfe 400 --seed 2 -o both >"$logs/second" 2>&1 || code=$?
    kill -CONT "$first"
    [ "$code" -eq 1 ] || fail "exit code $code of the second: $(cat "$logs/second")"
    grep -q "both: another process is writing into this folder" "$logs/second" || fail "said: $(cat "$logs/second")"
fi
wait "$first" || fail "$(cat "$logs/first")"
grep -q '"seed": "1"' both/samples.json || fail "other seed in: $(cat both/samples.json)"
quietly sample net.safetensors -n 6 --nfe 400 --seed 1 -o alone
diff -r both alone || fail "the pictures are not those of the seed"

check "what a killed process left is cleared away by the next one, not what somebody still writes"
mkdir left
touch left/.psld-1-0.tmp left/.psld-99999-12.tmp left/.samples.json.tmp
quietly sample net.safetensors -n 2 --nfe 4 -o left
[ ! -e left/.psld-1-0.tmp ] && [ ! -e left/.psld-99999-12.tmp ] || fail "temporaries stay: $(ls -a left)"
touch left/.psld-1-1.tmp
rm left/000001.png
(
    flock 9
    quietly sample net.safetensors -n 2 --nfe 4 -o left
) 9>left/.psld-1-1.tmp
[ -e left/.psld-1-1.tmp ] || fail "removed a file that is being written"

check "links in the place of what the program writes are replaced, not followed"
printf 'keep\n' >precious
mkdir links
ln -s ../precious links/.samples.json.tmp
quietly sample net.safetensors -n 1 --nfe 4 -o links
rm -r links
mkdir run
"$psld" train toy:moons -o run train.steps=2 model.nf=8 >"$logs/out" 2>&1 || fail "$(cat "$logs/out")"
for name in log.jsonl .lock config.yaml model.safetensors best.safetensors checkpoints/step-000000004.safetensors \
    samples/step-000000004.png; do
    rm -rf other
    cp -r run other
    rm -f "other/$name"
    ln -s "$PWD/precious" "other/$name"
    refuses 1 "$name: is a symbolic link" train -o other train.steps=4
done
[ "$(cat precious)" = keep ] || fail "wrote through a link"

check "control characters in files do not reach the terminal"
if python3 -c 'import json' 2>/dev/null; then
    cp net.safetensors odd.safetensors
    python3 - odd.safetensors <<'PYTHON'
import json, struct, sys
bytes = open(sys.argv[1], 'rb').read()
size = struct.unpack('<Q', bytes[:8])[0]
header = json.loads(bytes[8:8 + size])
del header['__metadata__']
name = next(iter(header))
header['\x1b[31mred\x07\x7f\u009b31m \u00e4\u20ac\U0001f600 ' + name] = header.pop(name)
text = json.dumps(header).encode()
text += b' ' * (-len(text) % 8)
open(sys.argv[1], 'wb').write(struct.pack('<Q', len(text)) + text + bytes[8 + size:])
PYTHON
    quietly info --tensors odd.safetensors
    says '\x1b[31mred\x07\x7f\xc2\x9b31m'
    says 'ä€😀'
    ! LC_ALL=C grep -q $'[\x01-\x08\x0b-\x1f\x7f]' "$logs/out" || fail "control characters on standard output"
else
    skip_part "names of tensors with control characters: no Python to write them with"
fi

check "with little address space commands end, and evaluation reports what it needs"
limited() { # MEGABYTES ARGUMENTS
    (
        ulimit -v $(($1 * 1024))
        shift
        timeout 60 "$psld" "$@" >"$logs/out" 2>"$logs/err" </dev/null
    )
}
if (ulimit -v 120000) 2>/dev/null && ! nm -D "$psld" 2>/dev/null | grep -q "__asan_init\|__tsan_init"; then
    for room in 120 160 200; do
        limited $room recipe vp || fail "recipe with $room MB: exit code $?: $(cat "$logs/err")"
    done
    quietly sample m.yaml -n 40 --nfe 4 -o a.npy
    quietly sample m.yaml -n 40 --nfe 4 --seed 1 -o b.npy
    quietly eval a.npy b.npy --metric fid
    code=0
    limited 160 eval a.npy b.npy --metric fid || code=$?
    [ "$code" -eq 1 ] || fail "eval with 160 MB: exit code $code"
    grep -q "MB of address space" "$logs/err" || fail "said: $(cat "$logs/err")"
else
    skip_part "little address space: it cannot be limited here"
fi
