#!/usr/bin/env bash
# pipelines/packages.sh over stand-ins for dpkg-query, apt-get, sudo and id; and the Containerfile's packages are the Makefile's.
set -u
. tests/cases.sh
stand=$KILN_TMP/bin
mkdir -p "$stand"
script() { printf '#!/bin/sh\n%s\n' "$2" >"$stand/$1" && chmod +x "$stand/$1"; }
for tool in sed tr env; do ln -s "$(command -v $tool)" "$stand/$tool"; done
sh=$(command -v sh)
# libz is there under its own name, libq as what libp provides; libgone was removed but left its settings.
script dpkg-query 'printf "ii libz\nii \nii libp\nii libq (= 1), libr\nrc libgone\nrc \n"'
script apt-get 'echo "apt-get $*"'
script sudo 'echo "sudo $*"; exec "$@"'
script id 'echo 1000'
run() { PATH=$stand $sh pipelines/packages.sh "$@" 2>&1; }

test_case 'what is missing is named' && (
    out=$(run tell libz libq libr) || fail 'what is there is called missing'
    [ -z "$out" ] || fail "it talks though nothing is missing: $out"
    ! out=$(run tell libz libgone libnew) || fail 'something missing ends with 0'
    [[ $out == *'apt-get install libgone libnew '* ]] || fail "the missing are not named: $out"
); result

test_case 'what is missing is installed' && (
    out=$(run install libz libnew) || fail "installing ends with $?: $out"
    [[ $out == *'so this runs: sudo apt-get update && sudo env '* ]] || fail "the command is not said first: $out"
    [[ $out == *'apt-get install -y --no-install-recommends libnew' ]] || fail "it was not run: $out"
); result

script id 'echo 0'

test_case 'root needs no sudo' && (
    out=$(run install libnew) || fail "installing as root ends with $?"
    [[ $out != *sudo* ]] || fail "root needs no sudo: $out"
); result

script apt-get 'exit 100'

test_case 'an apt-get that fails' && (
    ! out=$(run install libnew) || fail 'a failed apt-get ends with 0'
    [[ $out == *'could not install libnew'* ]] || fail "no sentence: $out"
); result

script id 'echo 1000'
rm "$stand/sudo"

test_case 'there is no sudo' && (
    ! out=$(run install libnew) || fail 'without sudo it ends with 0'
    [[ $out == *'there is no sudo'*'apt-get install libnew' ]] || fail "no sentence: $out"
); result

rm "$stand/dpkg-query"

test_case 'another distribution' && (
    out=$(run install libnew) || fail 'another distribution ends with an error'
    [[ $out == *'not Debian'*libnew ]] || fail "no sentence: $out"
); result

# make gpu-bundle, which a machine without a GPU runs from nothing, installs what is missing; what only builds says it.
kit=$KILN_TMP/kit log=$KILN_TMP/asked
mkdir -p "$kit"
for tool in dpkg-query apt-get id nvcc nvidia-smi; do rm -f "$stand/$tool"; done
script() { printf '#!/bin/sh\n%s\n' "$2" >"$kit/$1" && chmod +x "$kit/$1"; }
# shellcheck disable=SC2016 # the dollar sign is the script's
script apt-get 'echo "apt-get $*" >>'"$log"'; case $1 in install) touch '"$kit"'/installed ;; esac'
script dpkg-query 'if [ -e '"$kit"'/installed ]; then make -s --no-print-directory packages O='"$kit"'/none | sed "s/^/ii /"; fi'
script nvcc 'echo "Cuda compilation tools, release 13.0, V13.0.88"'
script id 'echo 0'

test_case 'make gpu-tests says what is missing' && (
    ! out=$(PATH="$kit:$PATH" make O="$kit/o" CC=false NVCC=false gpu-tests CUDA=0 2>&1) ||
        fail 'a build without packages ends with 0'
    [[ $out == *'packages are missing: apt-get install'*libcmocka-dev* ]] && [ ! -e "$log" ] || fail "make gpu-tests: $out"
); result

test_case 'make gpu-bundle installs what is missing' && (
    ! out=$(PATH="$kit:$PATH" make O="$kit/o" BUNDLE="$kit/bundle" CC=false gpu-bundle 2>&1) || fail 'false compiles'
    grep -q '^apt-get install -y .*libcmocka-dev' "$log" || fail "make gpu-bundle installs nothing: $out"
    [[ $out != *'packages are missing:'* ]] || fail "make gpu-bundle stops at packages: $out"
    [ ! -e "$kit/bundle" ] || fail 'a bundle of nothing'
); result

test_case 'the Containerfile installs what the Makefile asks for' && (
    wanted=$(make -s --no-print-directory packages O="$KILN_TMP/none") || fail 'make packages'
    listed=$(sed -n '/^ARG PACKAGES="/,/^ *"$/p' Containerfile | sed '1d;$d' | tr -d ' \\' | sort)
    [ "$(wc -l <<<"$wanted")" -gt 8 ] || fail "make packages prints too little: $wanted"
    [ "$(LC_ALL=C sort <<<"$wanted")" = "$(LC_ALL=C sort <<<"$listed")" ] ||
        fail "Containerfile and Makefile differ: $(diff <(LC_ALL=C sort <<<"$wanted") <(LC_ALL=C sort <<<"$listed"))"
    from=$(sed -n 's/^FROM \(.*\) AS base-1$/\1/p' Containerfile)
    [[ $from =~ ^docker.io/nvidia/cuda:([0-9]+\.[0-9]+)\.[0-9]+-devel-[a-z0-9.]+$ ]] || fail "the image is not pinned: $from"
    cuda=${BASH_REMATCH[1]/./-}
    for tool in sanitizer gdb nsight-systems nsight-compute; do
        grep -q "^ARG CUDA_TOOLS=.*cuda-$tool-$cuda" Containerfile || fail "no cuda-$tool of the image's CUDA"
    done
    # Of the two images, --build-arg CUDA=0 takes the one without CUDA, and none of CUDA's tools.
    grep -qx 'ARG CUDA=1' Containerfile && grep -qx 'FROM base-$CUDA' Containerfile && grep -q '^FROM docker.io/library/debian:.* AS base-0$' Containerfile &&
        grep -qF '$([ "$CUDA" = 0 ] || echo "$CUDA_TOOLS")' Containerfile && grep -q '^RUN make .* CUDA="$CUDA" ' Containerfile ||
        fail 'the argument CUDA=0 of the Containerfile'
    # COPY leaves the build folders of this machine out: their objects are newer than the sources and would pass for the image's.
    grep -qxE 'build\*/?' .dockerignore && grep -qx 'config.mk' .dockerignore ||
        fail '.dockerignore lets build folders or config.mk into the image'
); result
