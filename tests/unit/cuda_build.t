#!/usr/bin/env bash
# What the build asks of nvcc and nvidia-smi, and when (pipelines/cuda.mk, pipelines/cuda.sh), over stand-ins for both.
set -u
bad=0
fail() { echo "$*"; bad=1; }
stand=$KILN_TMP/bin o=$KILN_TMP/o log=$KILN_TMP/asked
tree=$KILN_TMP/tree # the sources without a config.mk, whose settings are a person's and not those that are tested
mkdir -p "$stand" "$KILN_TMP/none" "$KILN_TMP/kit/lib" "$tree"
for path in "$PWD"/*; do [ "${path##*/}" = config.mk ] || ln -s "$path" "$tree"; done
cd "$tree" || exit 1
script() { printf '#!/bin/sh\n%s\n' "$2" >"$stand/$1" && chmod +x "$stand/$1"; }
for tool in sh make sed tr grep sort find cat mkdir mv rm dirname printf echo; do ln -s "$(command -v $tool)" "$KILN_TMP/none"; done
nvcc() { # release
    # shellcheck disable=SC2016 # the dollar sign is the script's
    script nvcc 'case $1 in
--version) echo "Cuda compilation tools, release '"$1"', V'"$1"'.88" ;;
--list-gpu-arch) printf "compute_%s\n" 75 80 90 120 ;;
--dryrun) echo "#$ LIBRARIES=  \"-L'"$KILN_TMP"'/kit/lib/stubs\" \"-L'"$KILN_TMP"'/kit/lib\"" >&2 ;;
esac'
}
gpus() { script nvidia-smi "echo asked >>$log; $1"; }
with() { env -u CUDA -u CUDA_ARCHS -u CUDA_HOME PATH="$stand:$KILN_TMP/none" make O="$o" "$@" 2>&1; }
without() { env -u CUDA -u CUDA_ARCHS -u CUDA_HOME PATH="$KILN_TMP/none" make O="$o" "$@" 2>&1; }
built() { [ "$(cat "$o/cuda-archs")" = "$1" ] || fail "$2: built for '$(cat "$o/cuda-archs")', not '$1': $out"; }
said() { [[ $out == *"$1"* ]] || fail "expected: $1
got: $out"; }
asked() { [ "$(grep -c . "$log" 2>/dev/null)" = "$1" ] || fail "$2: nvidia-smi did not run $1 times"; }
state=$o/cuda-archs

# once for a build folder, and only where something is compiled for a GPU
nvcc 13.0
: >"$log"
gpus 'printf "9.0\n6.1\n9.0\n12.0\n[N/A]\n"'
out=$(with help); asked 0 'make help'
out=$(with CUDA=0 "$state"); built none CUDA=0; asked 0 CUDA=0
out=$(with "$state"); built '90 120' 'the GPUs here'; asked 1 'the first time'
said 'left out: 61'
out=$(with "$state"); built '90 120' again; asked 1 again
said 'is up to date'
out=$(with clean); : >"$log"
gpus 'echo 6.1'
out=$(with "$state"); built 90 'no GPU that nvcc knows'; out=$(with "$state"); asked 1 'no GPU that nvcc knows'
out=$(with clean); : >"$log"
gpus 'exit 9'
out=$(with "$state"); built 90 'a driver that does not answer'
gpus 'echo 8.0'
out=$(with "$state"); built 80 'a driver that answers now'

# a shell without nvcc, a node without a GPU: what is built stays what it is
rm -f "$o/gpus"
gpus 'exit 9'
out=$(with "$state"); built 80 'no GPU to be seen any more'
out=$(without "$state"); built 80 'no nvcc any more'
out=$(without CUDA=0 "$state"); built none 'CUDA=0 typed'
gpus 'echo 8.0'
out=$(with "$state"); built 80 'with nvcc and GPU again'

# what is typed, whatever its order
out=$(with "$state" CUDA_ARCHS='120 75 80 75'); built '75 80 120' CUDA_ARCHS
out=$(with "$state" CUDA_ARCHS='61') && fail 'nothing is left to compile for, and it does'
said "no compute capability of CUDA_ARCHS='61' can be compiled"
out=$(with -n "$o/kernels/device.cu.o" CUDA_ARCHS='80 90' V=1)
said 'code=sm_80 -gencode arch=compute_90,code=sm_90 -gencode arch=compute_80,code=compute_80 -gencode arch=compute_90,code=compute_90'
said '-DKILN_CUDA_ARCH_LEAST=80 '
said ',-ffp-contract=off '
for wrong in yes no '' '0 1'; do out=$(with help CUDA="$wrong") && fail "CUDA='$wrong' is taken"; said 'CUDA is 0 '; done
out=$(CUDA=/opt/cuda PATH="$stand:$KILN_TMP/none" make O="$o" help 2>&1) || fail "CUDA of the environment: $out"

# installing decides nothing anew
out=$(without install -n)
said "this compiles CUDA files, but nvcc is not found" # not: compiled without CUDA
out=$(with CUDA=0 "$state")
out=$(with install -n); [[ $out != *nvcc* ]] || fail "an installation is compiled with CUDA: $out"
out=$(with install -n CUDA=1); [[ $out == *nvcc* ]] || fail 'CUDA=1 does not count when installing'

# the toolkit's runtime, wherever nvcc is
out=$(with "$o/cuda-lib") && fail 'a toolkit without its static runtime will do'
said 'its folders have no libcudart_static.a'
: >"$KILN_TMP/kit/lib/libcudart_static.a"
out=$(with "$o/cuda-lib")
[ "$(cat "$o/cuda-lib")" = "-L$KILN_TMP/kit/lib" ] || fail "the runtime is sought at $(cat "$o/cuda-lib"): $out"

# no nvcc, or one that is too old
for old in 12.8 ''; do
    rm -f "$stand/nvcc"
    why='nvcc is not found'
    [ -z "$old" ] || { nvcc "$old"; why="nvcc belongs to CUDA $old, but 13 is needed"; }
    out=$(with clean)
    out=$(with "$state") || fail "$why: $out"
    built none "$why"; said "$why"
    out=$(with "$state"); [[ $out != *needed* ]] || fail "said again: $out"
    for goal in "$state CUDA=1" "$state CUDA_ARCHS=90" cuda release gpu-bundle; do
        # shellcheck disable=SC2086 # words
        out=$(with -n $goal) && fail "make $goal, and $why"
        said "$why"
    done
    out=$(with -n release CUDA=0) || fail "a release without CUDA: $out"
    out=$(with tests T=gpu/device) && fail 'a test of CUDA in a build without it'
    said 'device_test is about CUDA alone'
done
exit $bad
