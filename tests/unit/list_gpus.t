#!/usr/bin/env bash
# --list-gpus of a stage: the machine that a fake NVML shows, numbered as --devices counts; no manifest is needed nor touched, and
# a machine without GPUs is no failure.
set -u
. tests/cases.sh
fake=$KILN_TMP/libfake.so
read -ra cc <<<"${CC:-cc}" # make CC='ccache gcc' has two words
"${cc[@]}" -shared -fPIC -o "$fake" tests/unit/fake_nvml.c || { echo 'cc'; exit 1; }
export KILN_NVML=$fake
unset CUDA_VISIBLE_DEVICES CUDA_DEVICE_ORDER
list() { "$KILN_BIN/kiln-knn" --list-gpus "$@" 2>"$KILN_TMP/err"; }
# the row of a UUID, columns joined by one blank
row() { grep -- "$1" <<<"$out" | tr -s ' ' | sed 's/ $//'; }

export FAKE_GPUS=4 FAKE_LOST=1 FAKE_MIG=2 FAKE_HIDDEN=7

test_case 'GPUs are numbered as --devices counts' && (
    out=$(list) || fail "ends with $?"
    [[ $(row GPU-00) == '0 NVIDIA Fake 900 MiB of 1000 MiB 0000:1a:00.0 '*GPU-00* ]] || fail "the first: $out"
    [[ $(row MIG-21) == '2 NVIDIA Fake 100 MiB of 100 MiB 0000:1c:00.0 '* ]] || fail "the second instance: $out"
    [[ $(row 'GPU is lost') == '- GPU is lost '*'does not work' ]] || fail "the lost one: $out"
    [ -z "$(row GPU-01)" ] || fail "the lost one is among the others: $out"
    [ "$(wc -l <<<"$(grep -E '^(number|[0-9-]+ )' <<<"$out")")" = 6 ] || fail "not six lines: $out"
); result

test_case 'CUDA_VISIBLE_DEVICES and --devices' && (
    out=$(CUDA_VISIBLE_DEVICES=3,0 list --devices 1) || fail "ends with $?"
    [[ $(row GPU-03) == 0\ * ]] && [[ $(row GPU-00) == 1\ * ]] || fail "numbers are not those of CUDA_VISIBLE_DEVICES: $out"
    [[ $(row MIG-20) == '- '*'hidden by CUDA_VISIBLE_DEVICES' ]] || fail "hidden: $out"
    if ! grep -q 'this build has no CUDA' <<<"$out"; then
        [[ $(row GPU-00) == *chosen ]] && [[ $(row GPU-03) != *chosen ]] || fail "chosen: $out"
    fi
); result

test_case '--json' && (
    json=$(list --json) || fail "--json ends with $?"
    py rows "$json" || fail "--json: $json"
); result

test_case 'a machine without GPUs, and one without NVML' && (
    out=$(FAKE_GPUS=0 list) || fail "no GPU ends with $?"
    [ "$(wc -l <<<"$out")" = 1 ] && [ -n "$out" ] || fail "not one sentence: $out"
    [ "$(FAKE_GPUS=0 list --json)" = '[]' ] || fail 'no GPU is no empty array'
    out=$(KILN_NVML=/nowhere.so list) || fail "no NVML ends with $?"
    [ -n "$out" ] || fail 'no NVML, and no word'
); result

test_case 'a bad --devices' && (
    ! list --devices toaster || fail 'a bad --devices is taken'
    grep -q 'toaster' "$KILN_TMP/err" || fail 'no sentence about it'
); result
