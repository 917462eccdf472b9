# For scripts that try psld in a fresh Debian root (check-fresh, test-deb): source it as `. root.bash NAME "$@"`, with the
# script's own arguments. Makes sure that a root can be made, goes on in a mount namespace of its own, so that nothing
# stays mounted whatever happens, and sets $root, a new folder: DIR if that is the only argument, else a temporary one. It
# is removed when the script ends. PSLD_SUITE and PSLD_MIRROR name another release and another mirror.
# shellcheck shell=bash
root_user=$1
shift
suite=${PSLD_SUITE:-bookworm}
mirror=${PSLD_MIRROR:-http://deb.debian.org/debian}

die() {
    echo "$root_user: $*" >&2
    exit 1
}
[ $# -le 1 ] || { echo "usage: $root_user [DIR]" >&2 && exit 2; }
[ "$(id -u)" -eq 0 ] || die "only root may make a root folder and change into it"
command -v debootstrap >/dev/null || die "debootstrap is missing: apt-get install debootstrap"

if [ -z "${PSLD_ROOT_INSIDE-}" ]; then
    PSLD_ROOT_INSIDE=1 exec unshare --mount --propagation private "$0" "$@"
fi

if [ $# -eq 1 ]; then
    [ ! -e "$1" ] || [ -z "$(ls -A "$1")" ] || die "$1 is not empty"
    mkdir -p "$1"
    root=$(cd "$1" && pwd)
else
    root=$(mktemp -d "${TMPDIR:-/tmp}/psld-root.XXXXXX")
fi
root_log=$(mktemp "${TMPDIR:-/tmp}/psld-root-log.XXXXXX")
chmod 755 "$root" # apt fetches files as a user of its own

# What is still mounted is never removed: it would be the machine's own /dev.
clean_up() {
    umount "$root/dev/shm" "$root/dev" "$root/sys" "$root/proc" 2>/dev/null || true
    if grep -q " $root/" /proc/mounts; then
        echo "$root_user: something is still mounted below $root, which stays" >&2
    else
        rm -rf --one-file-system "$root" "$root_log"
    fi
}
trap clean_up EXIT
trap 'exit 130' INT TERM HUP

# timed NAME COMMAND...: adds its time to $report.
report=
timed() {
    local name=$1 start=$SECONDS code=0
    shift
    printf '\n== %s\n' "$name"
    "$@" || code=$?
    [ "$code" -eq 0 ] || name="$name: FAILED"
    report+=$(printf '%5d s  %s' $((SECONDS - start)) "$name")$'\n'
    return "$code"
}

# The machine's way to the network: name servers, hosts, sources of packages, and the settings of apt that name a proxy.
copy_network() {
    local file
    for file in /etc/resolv.conf /etc/hosts; do
        [ ! -e "$file" ] || cp -L "$file" "$root$file"
    done
    file=/etc/apt/sources.list.d/debian.sources
    if [ -e "$file" ] && grep -q "^Suites:.*\b$suite\b" "$file"; then
        cp -L "$file" "$root$file"
        : >"$root/etc/apt/sources.list"
    fi
    { grep -rlis proxy /etc/apt/apt.conf /etc/apt/apt.conf.d || true; } | while read -r file; do
        cp -L "$file" "$root/etc/apt/apt.conf.d/"
    done
}

make_root() {
    debootstrap --variant=minbase "$suite" "$root" "$mirror" >"$root_log" 2>&1 || { tail -n 20 "$root_log" && return 1; }
    copy_network &&
        mount -t proc proc "$root/proc" &&
        mount -t sysfs -o ro sys "$root/sys" &&
        mount --bind /dev "$root/dev" &&
        mount -t tmpfs shm "$root/dev/shm"
}

# inside COMMAND...: runs it in the root, with an environment of its own.
inside() {
    local name keep=()
    for name in JOBS http_proxy https_proxy no_proxy; do
        [ -z "${!name-}" ] || keep+=("$name=${!name}")
    done
    chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM=dumb "${keep[@]}" "$@"
}

# install_inside PACKAGE...: by apt, with what they depend on.
install_inside() {
    inside apt-get -q update &&
        inside env DEBIAN_FRONTEND=noninteractive apt-get -qq -o Dpkg::Use-Pty=0 install -y --no-install-recommends "$@"
}
