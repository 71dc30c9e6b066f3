#!/usr/bin/env bash
# kiln-doctor: a machine without GPUs is healthy, one whose GPU is ill ends with 6 and says how to repair it, a manifest that does
# not open ends with its own code; nothing is changed. GPUs are those of a fake NVML.
set -u
. tests/cases.sh
doctor=$KILN_BIN/kiln-doctor
fake=$KILN_TMP/libfake.so
read -ra cc <<<"${CC:-cc}" # make CC='ccache gcc' has two words
"${cc[@]}" -shared -fPIC -o "$fake" tests/unit/fake_nvml.c || { echo 'cc'; exit 1; }
unset CUDA_VISIBLE_DEVICES CUDA_DEVICE_ORDER
export KILN_NVML=/nowhere.so
run() { # EXIT ARGUMENT...: its stdout in $out, stderr in $err
    local want=$1 code
    shift
    out=$("$doctor" "$@" 2>"$KILN_TMP/err")
    code=$?
    err=$(cat "$KILN_TMP/err")
    [ $code = "$want" ] || fail "doctor $* ends with $code, not $want: $out $err"
}
says() { [[ $out$'\n'$err == *$1* ]] || fail "no word of '$1': $out $err"; }
silent() { [[ $out$'\n'$err != *$1* ]] || fail "it says '$1': $out $err"; }

test_case 'a machine without GPUs is healthy' && (
    run 0
    for word in "SplatKiln $("$doctor" --version | cut -d' ' -f2)" 'SQLite 3.' 'zstd ' 'libpng ' 'jansson ' 'CPU: ' 'memory: ' \
        'limits: ' 'disk: ' \
        'CUDA: ' 'CUDA_VISIBLE_DEVICES is not set' 'note: no GPU is used'; do says "$word"; done
    [ -z "$err" ] || fail "stderr without a fault: $err"
); result

test_case '--json' && (
    run 0 --json
    py healthy "$out" || fail "--json: $out"
); result

test_case 'limits of the shell are warned of' && (
    (ulimit -f 100000 && "$doctor") | grep -q 'warning: no file may grow beyond' || fail 'RLIMIT_FSIZE is not seen'
    (ulimit -n 100 && "$doctor") | grep -q 'warning: only 100 files' || fail 'RLIMIT_NOFILE is not seen'
); result

test_case 'a wrong command line' && (
    run 2 a b
); result

# GPUs, as NVML tells of them
export KILN_NVML=$fake FAKE_GPUS=3
cuda=1
run_any() { out=$("$doctor" "$@" 2>"$KILN_TMP/err"); code=$?; err=$(cat "$KILN_TMP/err"); }
run_any
! [[ $out == *'this build has no CUDA'* ]] || cuda=

test_case 'GPUs, as NVML tells of them' && (
    [ -n "$cuda" ] || { [ $code = 0 ] && says 'warning: GPUs are present, but this build has no CUDA'; }
    [[ $out == *'999.1'*'number  GPU'*'GPU-02000000'* ]] || fail "no driver, no table: $out"
); result

test_case 'a GPU that is ill' && (
    FAKE_ECC=3 run 6
    says 'GPU 0 (GPU-00000000-0000-0000-0000-000000000000) had 3 errors of memory'
    says 'nvidia-smi --gpu-reset -i 0'
    FAKE_REPAIR=2 run 6; says 'have the GPU replaced'
    FAKE_LOST=1 run 6; says 'GPU 1 does not work, the driver says: GPU is lost'
    [ "$(FAKE_LOST=1 "$doctor" 2>&1 | grep -c 'GPU 1 does not work')" = 1 ] || fail 'what is ill is said twice'
); result

test_case '--json of an ill machine' && (
    FAKE_LOST=1 run 6 --json
    py ill "$out" || fail "--json of an ill machine: $out"
); result

test_case 'a GPU that works and is not as it should be' && (
    FAKE_REPAIR=1 run_any; says 'has bad memory that is replaced when it is reset'
    FAKE_MODE=2 run_any; says 'compute mode PROHIBITED'
    FAKE_FREE=100 run_any; says 'warning: GPU 0 has 1000 MiB of memory, but only'
); result

test_case 'GPUs that are hidden' && (
    CUDA_VISIBLE_DEVICES=-1 run_any
    [ $code = 0 ] || fail "hidden GPUs end with $code"
    says 'every GPU here is hidden'
    CUDA_VISIBLE_DEVICES=1,9 run_any; says "'9' is none of the GPUs here (3)"
); result

test_case 'GPUs and drivers that CUDA cannot use' && (
    [ -n "$cuda" ] || skip 'this build has no CUDA'
    FAKE_ARCH=61 FAKE_GPUS=1 run 0; says 'warning: GPU 0 (compute capability 6.1) is older'
    if ! tests/gpu/has_gpu; then
        run 6 # CUDA finds none of NVML's
        says 'GPU 2 DOES NOT WORK'; says 'does not work: '
    fi
    FAKE_CUDA=5000 run 6; says 'the driver has CUDA 5.0; update the driver'
    FAKE_END=11 run 6; says 'failed when asked for GPUs (signal 11)'
); result

# the place of a manifest
export KILN_NVML=/nowhere.so
db=$KILN_TMP/bake/manifest.db
"$KILN_BIN/kiln-generate" scene "$KILN_TMP/s" --gaussians 200 --cameras 1 --size 32x32 >/dev/null 2>&1 || fail 'generate'
"$KILN_BIN/kiln-import" "$KILN_TMP/s" "$db" --quiet >/dev/null || fail 'import'
before=$(sha256sum "$db")

test_case 'a manifest that opens' && (
    run 0 "$db"
    says "manifest: '$db' opens"; silent 'lock'; silent 'scratch'
); result

test_case 'what a process that was killed has left, and a claim' && (
    echo 'pid 1' >"$db.lock"
    mkdir -p "$db.scratch/chunk-00"
    run 0 "$db"
    says 'belongs to a process that was killed'; says 'scratch of 1 stage that did not finish'
    [ -e "$db.lock" ] && [ -d "$db.scratch/chunk-00" ] && [ "$before" = "$(sha256sum "$db")" ] || fail 'something was changed'
    echo 'splatkiln-claim 1' >"$db.claim"; run 0 "$db"; says 'holds data of a plan for tasks on other hosts'; silent 'did not finish'
    rm "$db.claim"
); result

flock_held() { py held "$db.lock"
}

test_case 'a manifest that is being written' && (
    echo 'pid 1' >"$db.lock"
    out=$(flock_held) && says 'is being written by another process now'
); result

test_case 'a manifest that does not open' && (
    run 3 "$KILN_TMP/nothing.db"
    says 'cannot open manifest'
    run 3 "$KILN_TMP/s"
); result
