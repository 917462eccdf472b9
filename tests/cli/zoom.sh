#!/usr/bin/env bash
# --zoom: sheets of small pictures, magnified, by every command that writes one.
set -eu
. "$(dirname "$0")/lib.bash"
write_networks

size_of() { od -An -tu1 -j16 -N8 "$1" | awk '{print ($1*16777216+$2*65536+$3*256+$4) " x " ($5*16777216+$6*65536+$7*256+$8)}'; }
is_sized() { # FILE "WIDTH x HEIGHT"
    [ "$(size_of "$1")" = "$2" ] || fail "$1 is $(size_of "$1"), expected $2"
}

check "a grid of four pictures of 8 x 8: pixels become squares, the space between stays 2"
quietly sample net.safetensors -n 4 --nfe 3 -o small.png
is_sized small.png "22 x 22"
quietly sample net.safetensors -n 4 --nfe 3 --zoom 1 -o same.png
cmp small.png same.png || fail "--zoom 1 changes something"
quietly sample net.safetensors -n 4 --nfe 3 --zoom 5 -o large.png --trajectory way.png
is_sized large.png "86 x 86"
is_sized way.png "506 x 170"

check "the other commands"
quietly sample net.safetensors -n 2 --nfe 3 -o pictures
quietly guide net.safetensors --classifier c.safetensors --label 1 -n 2 --nfe 3 --zoom 3 -o guided.png
is_sized guided.png "54 x 28"
quietly inpaint net.safetensors --image pictures/000000.png --rect 0,4,8,4 -n 2 --nfe 3 --zoom 2 -o filled.png
is_sized filled.png "74 x 20"
quietly inpaint net.safetensors --image pictures/000000.png --rect 0,4,8,4 -n 2 --nfe 3 --zoom 2 -o filled
is_sized filled/strips.png "74 x 20"
is_sized filled/samples/000000.png "8 x 8"
quietly restore net.safetensors --task denoise --noise 0.1 --image pictures/000000.png -n 1 --nfe 3 --iterations 1 --zoom 2 -o clean.png
is_sized clean.png "56 x 20"
quietly interpolate net.safetensors pictures/000000.png pictures/000001.png -n 3 --nfe 5 --zoom 4 -o strip.png
is_sized strip.png "104 x 36"

check "what has no sheet is refused"
write_mixture m.yaml
refuses 2 "--zoom is for sheets of pictures" sample net.safetensors -n 2 --zoom 2 -o x.npy
refuses 2 "--zoom is for sheets of pictures" sample net.safetensors -n 2 --zoom 2 -o folder
refuses 2 "--zoom is for sheets of pictures" guide net.safetensors --classifier c.safetensors --label 1 --zoom 2 -o x.npy
refuses 2 "--zoom is for sheets of pictures" interpolate net.safetensors a.png b.png --zoom 2 -o x.npy
refuses 1 "--zoom: m.yaml draws no pictures" sample m.yaml --zoom 2 -o x.png
refuses 2 "--zoom: expected 1 to 64, found 65" sample net.safetensors --zoom 65 -o x.png
refuses 2 "--zoom: expected a whole number" sample net.safetensors --zoom 0 -o x.png
