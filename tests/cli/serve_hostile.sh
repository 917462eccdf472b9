#!/usr/bin/env bash
# psld serve among enemies: other hosts and origins, no token, paths and links that lead out, bodies of every wrong kind,
# clients that are slow or go away. All are refused or dropped, the server lives on, and nothing leaks.
set -eu
. "$(dirname "$0")/lib.bash"
. "$(dirname "$0")/serve.bash"
write_mixture ring.yaml
printf 'secret\n' >secret.yaml
mkdir folder folder/inner
cp ring.yaml folder/
ln -s ../secret.yaml folder/out.yaml
ln -s "$PWD/secret.yaml" folder/absolute.yaml
ln -s .. folder/up
ln -s ring.yaml folder/within.yaml
ln -s /etc folder/inner/etc
printf 'hidden\n' >folder/.hidden
mkfifo folder/pipe.yaml
serve_begin folder
port=${server##*:}

# code WANTED [OPTIONS of curl]: without the token, unless it is among them.
code() {
    local wanted=$1 found
    shift
    found=$(curl -s -o "$logs/answer" -w '%{http_code}' --max-time 20 --path-as-is "$@") || true
    [ "$found" = "$wanted" ] || fail "$*: $found, expected $wanted: $(head -c 300 "$logs/answer")"
}
lives() { get api/about 200; }

check "the token is asked for by every request"
for path in '' api/about api/files api/jobs app.js nothing 'api/file?path=ring.yaml' '?token=' '?token=0' \
    "?token=${token%?}" "?token=${token}0" "?token=${token^^}x"; do
    code 401 "$server/$path"
done
code 401 -H "Authorization: Bearer ${token/[0-9a-f]/x}" "$server/api/about"
code 401 -H "Authorization: Basic $token" "$server/api/about"
code 401 -b "psld_$((port + 1))=$token" "$server/api/about"
code 401 -X POST "$server/api/jobs" -H 'Content-Type: application/json' -d '{}'
code 200 -b "other=1; psld_$port=$token" "$server/api/about"
code 200 "$server/api/about?token=$token"
code 303 -D "$logs/headers" "$server/?token=$token"
grep -qi "^set-cookie: psld_$port=$token; .*HttpOnly; SameSite=Strict" "$logs/headers" || fail "the cookie: $(cat "$logs/headers")"
grep -qi '^location: /.$' "$logs/headers" || fail "where to: $(cat "$logs/headers")"
code 200 -D "$logs/headers" -H "$auth" "$server/"
for header in "content-security-policy: default-src 'none'" 'x-content-type-options: nosniff' 'referrer-policy: no-referrer'; do
    grep -qi "^$header" "$logs/headers" || fail "no header $header"
done
! grep -qi '^access-control' "$logs/headers" || fail "a CORS header"
! grep -qi unsafe "$logs/headers" || fail "the policy allows what is unsafe"

check "the host must be ours, and the origin of what changes something"
for host in evil.example "evil.example:$port" 127.0.0.1 "127.0.0.1:1" "127.0.0.1:$port.evil.example" '' \
    "127.0.0.1.nip.io:$port" "localhost:$port:1" "[::1]" "x@127.0.0.1:$port"; do
    code 403 -H "$auth" -H "Host: $host" "$server/api/about"
done
for host in "127.0.0.1:$port" "localhost:$port" "LOCALHOST:$port" "[::1]:$port"; do
    code 200 -H "$auth" -H "Host: $host" "$server/api/about"
done
body='{"path": "x.yaml", "recipe": "psld"}'
for origin in http://evil.example "http://evil.example:$port" null "https://127.0.0.1:$port" "http://127.0.0.1" \
    "http://127.0.0.1:$((port + 1))" "http://127.0.0.1:$port.evil.example" file://; do
    code 403 -H "$auth" -H "Origin: $origin" "$server/api/save" -H 'Content-Type: application/json' -d "$body"
    code 403 -b "psld_$port=$token" -H "Origin: $origin" -X DELETE "$server/api/jobs/1"
    ! grep -qi access-control "$logs/answer" || fail "CORS"
done
code 403 -H "$auth" -H 'Sec-Fetch-Site: cross-site' "$server/api/save" -H 'Content-Type: application/json' -d "$body"
code 403 -H "$auth" -H 'Sec-Fetch-Site: same-site' "$server/api/save" -H 'Content-Type: application/json' -d "$body"
[ ! -e folder/x.yaml ] || fail "it was written all the same"
code 200 -H "$auth" -H "Origin: http://localhost:$port" "$server/api/save" -H 'Content-Type: application/json' -d "$body"
rm folder/x.yaml
code 405 -H "$auth" -X OPTIONS "$server/api/jobs"
code 405 -H "$auth" -X PUT "$server/api/jobs"
code 404 -H "$auth" -X DELETE "$server/api/jobs/1"

check "no path leads out of the folder"
for path in ../secret.yaml ..%2fsecret.yaml %2e%2e/secret.yaml inner/../../secret.yaml /etc/passwd "$PWD/secret.yaml" \
    out.yaml absolute.yaml up/secret.yaml inner/etc/passwd .hidden inner/.. . '' ./ring.yaml inner//ring.yaml \
    shipped:../../secret.yaml shipped:/etc/passwd ring.yaml/ ..; do
    for question in "file?path=$path" "model?path=$path" "run?path=$path" "run/log?path=$path" "sweep?path=$path"; do
        found=$(curl -s -o "$logs/answer" -w '%{http_code}' -H "$auth" --max-time 20 "$server/api/$question")
        case $found in 400 | 403 | 404 | 422) ;; *) fail "$question: $found: $(head -c 200 "$logs/answer")" ;; esac
        ! grep -qE 'secret$|root:|hidden$' "$logs/answer" || fail "$question: $(cat "$logs/answer")"
    done
    body=$(jq -n --arg path "$path" '{kind: "draw", model: $path}')
    code 422 -H "$auth" "$server/api/jobs" -H 'Content-Type: application/json' -d "$body"
    body=$(jq -n --arg path "$path" '{path: $path, recipe: "psld"}')
    found=$(curl -s -o /dev/null -w '%{http_code}' -H "$auth" "$server/api/save" -H 'Content-Type: application/json' -d "$body")
    case $found in 400 | 403 | 404 | 409 | 422) ;; *) fail "save to $path: $found" ;; esac
    body=$(jq -n --arg recipe "$path beta=4" '{recipe: $recipe}')
    post api/recipe "$body" 200
    answer '.valid == false'
    ! grep -qE 'secret|root:' "$logs/answer" || grep -q 'secret.yaml' "$logs/answer" || fail "$path: $(cat "$logs/answer")"
done
[ "$(cat secret.yaml)" = secret ] || fail "a file outside was changed"
code 400 -H "$auth" "$server/api/file?path=ring.yaml%00.png"
code 400 -H "$auth" "$server/api/%2e%2e/etc"
code 400 -H "$auth" "$server/%ff"
code 400 -H "$auth" "$server/api/../../etc/passwd"
get 'api/file?path=within.yaml' 200
cmp "$logs/answer" ring.yaml || fail "a link within the folder"
code 404 -H "$auth" "$server/api/file?path=pipe.yaml"
get 'api/files' 200
answer '.files | all(.path | test("hidden|passwd|secret|up/|absolute|out.yaml") | not)'
post api/runs '{"path": "up/run", "data": "toy:moons"}' 403
post api/runs '{"path": "r", "data": "../secret.yaml"}' 403
post api/runs '{"path": "r", "config": "out.yaml"}' 403
post api/runs '{"path": "r", "data": "toy:moons", "set": {"train.init": "/etc/passwd"}}' 422
post api/runs '{"path": "r", "data": "toy:moons", "set": {"process": "../secret.yaml"}}' 422
post api/runs '{"path": "-r", "data": "toy:moons"}' 403
[ "$(ls .)" = "folder
ring.yaml
secret.yaml" ] || fail "files outside: $(ls .)"

check "things are saved as what they are, into the folder alone"
quietly sample ring.yaml -n 4 --nfe 2 -o small.png
ask POST api/uploads 200 --data-binary @small.png -H 'Content-Type: image/png'
thing=$(jq -r .thing "$logs/answer")
for body in '{"path": "x.html", "thing": "THING"}' '{"path": "x.npy", "thing": "THING"}' '{"path": "png", "thing": "THING"}' \
    '{"path": "x.png", "thing": "ring.yaml"}' '{"path": "x.png", "thing": "/etc/passwd"}' '{"path": "x.png", "thing": ""}' \
    '{"path": "x.png", "thing": "THING", "recipe": "psld"}' '{"path": "x.png", "thing": 3}'; do
    post api/save "${body/THING/$thing}" 400
done
for other in upload:99 upload:-1 "${thing}x" job:1/samples/0 job:1/samples job:x/samples/0 job:1/../0; do
    post api/save "{\"path\": \"x.npy\", \"thing\": \"$other\"}" 422
done
for path in ../x.png /tmp/x.png up/x.png .x.png; do
    found=$(curl -s -o /dev/null -w '%{http_code}' -H "$auth" "$server/api/save" -H 'Content-Type: application/json' \
        -d "{\"path\": \"$path\", \"thing\": \"$thing\"}")
    case $found in 400 | 403) ;; *) fail "save to $path: $found" ;; esac
done
[ ! -e x.png ] && [ ! -e folder/x.png ] && [ ! -e folder/x.npy ] || fail "it was written all the same"
rm small.png

check "bodies: too large, cut short, broken, nested, of another type"
head -c 1100000 /dev/zero | tr '\0' ' ' >large
code 413 -H "$auth" "$server/api/recipe" -H 'Content-Type: application/json' --data-binary @large
code 413 -H "$auth" "$server/api/recipe" -H 'Content-Type: application/json' -H 'Transfer-Encoding: chunked' --data-binary @large
code 415 -H "$auth" "$server/api/recipe" -d '{"recipe": "psld"}'
code 415 -H "$auth" "$server/api/recipe" -H 'Content-Type: text/plain' -d '{"recipe": "psld"}'
head -c 100000 /dev/zero | tr '\0' '[' >nested
for body in '' '{' '{"recipe": "psld"' '[]' '"x"' '{"recipe": "psld",}' '{"recipe": "psld", "recipe": "vp"}' '{"recipe": NaN}' \
    @nested "$(printf '{"recipe": "\xff"}')" '{"nothing": 1}' '{"recipe": "psld", "at": ["x"]}' \
    '{"recipe": "psld", "curves": 1e9}' '{"recipe": "psld", "paths": -1}' '{}'; do
    code 400 -H "$auth" "$server/api/recipe" -H 'Content-Type: application/json' --data-binary "$body"
done
for recipe in 1 null '[]' '{}' '{"D": 1}' '"\u0000"' '{"preset": "vp", "beta": [1, 2, 3]}' '{"D": [[1e999]]}' '"psld gamma=nan"' \
    '{"D": [[0.5]], "Q": [[0]], "name": "x: [y"}' '"vp beta=[1,2"' '{"preset": "../secret.yaml"}' '{"preset": 3}'; do
    curl -s -o "$logs/answer" --max-time 20 -H "$auth" "$server/api/recipe" -H 'Content-Type: application/json' \
        -d "{\"recipe\": $recipe}"
    jq -e 'has("valid") or has("error")' "$logs/answer" >/dev/null || fail "$recipe: $(cat "$logs/answer")"
done
for body in '{"kind": "draw"}' '{"kind": 1}' '{"kind": "draw", "model": 1}' '{"kind": "draw", "model": "ring.yaml", "n": 1e300}' \
    '{"kind": "draw", "model": "ring.yaml", "n": "--help"}' '{"kind": "draw", "model": "ring.yaml", "seed": [1]}' \
    '{"kind": "animate", "points": []}' '{"kind": "animate", "points": [[0, 0]], "n": 1e6}' \
    '{"kind": "animate", "mixture": {"weights": [1]}}' '{"kind": "inpaint", "model": "ring.yaml", "image": "upload:99"}' \
    '{"kind": "inpaint", "model": "ring.yaml", "image": "job:1/samples/1"}' \
    '{"kind": "encode", "model": "ring.yaml", "image": 3}'; do
    found=$(curl -s -o "$logs/answer" -w '%{http_code}' -H "$auth" "$server/api/jobs" -H 'Content-Type: application/json' -d "$body")
    case $found in
    400 | 422) ;;
    202) # it fails when it is its turn
        id=$(jq -r .id "$logs/answer")
        curl -sN -H "$auth" "$server/api/jobs/$id/events" | grep -q '"state":"failed"' || fail "$body: done" ;;
    *) fail "$body: $found: $(cat "$logs/answer")" ;;
    esac
done
lives

check "uploads: files that are not pictures, or too large"
printf 'GIF89a' >x.gif
ask POST api/uploads 422 --data-binary @x.gif -H 'Content-Type: image/png'
ask POST api/uploads 422 --data-binary '' -H 'Content-Type: image/png'
head -c 33554433 /dev/zero >big
ask POST api/uploads 413 --data-binary @big -H 'Content-Type: image/png' -H 'Expect:'
# The header of a PNG of 100000 x 90000 pixels.
printf '\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\1\x86\xa0\0\1\x5f\x90\x08\0\0\0\0\x6d\x1a\x4f\x3c' >bomb.png
found=$(curl -s -o "$logs/answer" -w '%{http_code}' -H "$auth" --data-binary @bomb.png -H 'Content-Type: image/png' "$server/api/uploads")
case $found in 413 | 422) ;; *) fail "a picture of nine thousand million pixels: $found" ;; esac
rm -f big large nested x.gif bomb.png
lives

check "jobs and streams are limited"
for _ in $(seq 16); do post api/jobs '{"kind": "draw", "model": "shipped:digits.safetensors", "n": 256, "nfe": 100}' 202; done
last=$(jq -r .id "$logs/answer")
post api/jobs '{"kind": "draw", "model": "ring.yaml"}' 429
streams=()
for _ in $(seq 70); do curl -sN -o /dev/null -w '%{http_code}\n' -H "$auth" "$server/api/jobs/$last/events" >>"$logs/streams" & streams+=($!); done
for _ in $(seq 100); do [ "$(grep -c 429 "$logs/streams")" -lt 6 ] || break; sleep 0.1; done
[ "$(grep -c 429 "$logs/streams")" -ge 6 ] || fail "more than 64 streams: $(sort "$logs/streams" | uniq -c)"
lives
get api/jobs 200
for id in $(jq -r '.jobs[].id' "$logs/answer"); do ask DELETE "api/jobs/$id" 200; done
wait "${streams[@]}" || true

if command -v python3 >/dev/null; then
    check "slow and broken clients, and a thousand that go away, leave nothing behind"
    python3 - "$port" "$token" "$server_pid" <<'PYTHON'
import os, random, socket, struct, sys, time
port, token, pid = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
head = f"Host: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\n"


def connect(timeout=30):
    return socket.create_connection(("127.0.0.1", port), timeout)


def whole(text, timeout=30):
    with connect(timeout) as s:
        s.sendall(text.encode() if isinstance(text, str) else text)
        answer = b""
        try:
            while part := s.recv(65536):
                answer += part
        except (ConnectionError, socket.timeout):
            pass
        return answer


def descriptors():
    return len(os.listdir(f"/proc/{pid}/fd"))


def settled(limit):
    for _ in range(300):
        if descriptors() <= limit:
            return True
        time.sleep(0.1)
    return False


ok = f"GET /api/about HTTP/1.1\r\n{head}Connection: close\r\n\r\n"
assert whole(ok).startswith(b"HTTP/1.1 200")
time.sleep(0.5)
before = descriptors()

# What is no request at all; two hosts; a line that never ends.
random.seed(1)
for text in ["\r\n\r\n\r\n", "GET\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", f"GET / HTTP/1.1\r\n{head}Host: evil\r\nConnection: close\r\n\r\n",
             f"GET /api/about HTTP/1.1\r\nConnection: close\r\nAuthorization: Bearer {token}\r\n\r\n", "A" * 100000,
             f"GET /{'a' * 70000} HTTP/1.1\r\n{head}\r\n", f"GET / HTTP/1.1\r\n{'X: y' * 20000}\r\n\r\n",
             f"POST /api/recipe HTTP/1.1\r\n{head}Content-Length: -1\r\n\r\n",
             f"POST /api/recipe HTTP/1.1\r\n{head}Content-Length: 99999999999999999999\r\n\r\n"]:
    answer = whole(text)
    assert not answer or answer.startswith((b"HTTP/1.1 4", b"HTTP/1.0 4", b"HTTP/1.1 505", b"HTTP/1.1 501")), (text[:40], answer[:100])
for _ in range(200):
    answer = whole(bytes(random.randrange(256) for _ in range(random.randrange(1, 200))) + b"\r\n\r\n", 2)
    assert not answer.startswith(b"HTTP/1.1 2"), answer[:100]

# A thousand connections that are dropped, at every point of a request, with a reset.
post = f"POST /api/recipe HTTP/1.1\r\n{head}Content-Type: application/json\r\nContent-Length: 20\r\n\r\n" + '{"recipe": "psld"}  '
events = f"GET /api/run/events?path=none HTTP/1.1\r\n{head}\r\n"
for i in range(1000):
    s = connect()
    text = (post, ok, events)[i % 3]
    s.sendall(text[:random.randrange(len(text) + 1)].encode())
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    s.close()
assert whole(ok).startswith(b"HTTP/1.1 200")

# Headers and a body that come a byte at a time: dropped in about ten seconds, whatever still comes.
slow = [connect(), connect(), connect()]
slow[1].sendall(post.replace("Content-Length: 20", "Content-Length: 100000").encode())
slow[2].sendall(b"GET / HTTP/1.1\r\n")
began, alive = time.monotonic(), set(range(3))
while alive and time.monotonic() - began < 40:
    for i in list(alive):
        try:
            slow[i].send(b"x")
            slow[i].settimeout(0.1)
            if slow[i].recv(1000) == b"":
                alive.discard(i)
        except socket.timeout:
            pass
        except OSError:
            alive.discard(i)
    time.sleep(0.2)
assert not alive, f"slow clients {alive} are still there after {time.monotonic() - began:.0f} s"
assert whole(ok).startswith(b"HTTP/1.1 200")
assert settled(before), f"{descriptors()} descriptors, {before} before"
PYTHON
else
    skip_part "slow clients and dropped connections: no python3"
fi
lives

check "--host asks for the token, too, and takes no other name"
serve_end
serve_begin folder --host 0.0.0.0
server=http://127.0.0.1:${server##*:}
port=${server##*:}
code 401 "$server/api/about"
code 200 -H "$auth" "$server/api/about"
code 403 -H "$auth" -H "Host: evil.example:$port" "$server/api/about"
code 200 -H "$auth" -H "Host: 10.1.2.3:$port" "$server/api/about"
serve_end

check "wrong usage and an address that is taken"
refuses 2 "--port" serve folder --port 99999
refuses 2 "--port" serve folder --port x
refuses 2 "one folder" serve folder folder
refuses 1 "nowhere" serve nowhere
refuses 1 "cannot listen" serve folder --host no.such.name.invalid
