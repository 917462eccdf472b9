# A server to ask, for tests of psld serve.
"$psld" serve --help >/dev/null
command -v curl >/dev/null || skip_all "no curl; tools/bootstrap test installs it"
server_pid=''

# serve_begin FOLDER [OPTION...]: starts it. Sets server, token and auth, a header.
serve_begin() {
    local code=0
    rm -f "$logs/url" # that of an earlier server
    "$psld" serve "$@" --port 0 >"$logs/url" 2>"$logs/server" &
    server_pid=$!
    trap 'kill $server_pid 2>/dev/null || true; rm -rf "$logs"' EXIT
    for _ in $(seq 200); do
        [ ! -s "$logs/url" ] || break
        kill -0 $server_pid 2>/dev/null || wait $server_pid || code=$?
        if [ $code -ne 0 ] && grep -q 'built without' "$logs/server"; then skip_all "$(cat "$logs/server")"; fi
        sleep 0.05
    done
    [ -s "$logs/url" ] || fail "no address: $(cat "$logs/server")"
    server=$(sed 's|/?token=.*||' "$logs/url")
    token=$(sed 's|.*token=||' "$logs/url")
    auth="Authorization: Bearer $token"
}

serve_end() {
    kill -INT $server_pid
    wait $server_pid || fail "the server ends with $?: $(cat "$logs/server")"
    ! grep -qE 'Sanitizer|runtime error' "$logs/server" || fail "$(cat "$logs/server")"
    trap 'rm -rf "$logs"' EXIT
}

# ask METHOD PATH CODE [OPTIONS of curl...]: the answer is in $logs/answer.
ask() {
    local method=$1 path=$2 wanted=$3 code
    shift 3
    code=$(curl -s -o "$logs/answer" -w '%{http_code}' -X "$method" -H "$auth" --max-time 120 "$@" "$server/$path") || true
    [ "$code" = "$wanted" ] || fail "$method $path $*: $code, expected $wanted: $(head -c 500 "$logs/answer")"
}
get() { ask GET "$1" "$2"; }
post() { ask POST "$1" "$3" -H 'Content-Type: application/json' --data-binary "$2"; }
upload() { ask POST api/uploads 200 -H 'Content-Type: image/png' --data-binary "@$1"; }

# answer FILTER: of jq, true of the last answer.
answer() { jq -e "$1" "$logs/answer" >/dev/null || fail "not so: $1: $(head -c 1000 "$logs/answer")"; }

# job BODY: runs one to its end. Sets job; its last state is in $logs/answer and $logs/job, what the stream said in events.
job() {
    post api/jobs "$1" 202
    job=$(jq -r .id "$logs/answer")
    curl -sN -H "$auth" --max-time 120 "$server/api/jobs/$job/events" >"$logs/events"
    tail -n 3 "$logs/events" | grep -q '^event: end' || fail "the stream has no end: $(tail -c 500 "$logs/events")"
    get "api/jobs/$job" 200
    cp "$logs/answer" "$logs/job"
    answer '.state == "done"'
}

# same_bits ARRAY COMMAND...: the array of the last job is what the command writes.
same_bits() {
    local array=$1
    shift
    "$psld" "$@" -o cli.npy >/dev/null
    get "api/jobs/$job/$array.npy" 200
    cmp cli.npy "$logs/answer" || fail "other bits than psld $*"
    cp "$logs/job" "$logs/answer"
}
