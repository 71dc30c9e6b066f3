#!/bin/sh
# cuda.sh why-not|archs|lib NVCC [...] -- what cuda.mk asks of the CUDA toolkit and of the GPUs here.
#   why-not NVCC            why this nvcc cannot compile for us, in one sentence; nothing when it can
#   archs NVCC MEMORY [N]   the compute capabilities to compile for, lowest first: N, else those of the GPUs here, else
#                           those of $BUILT, else Hopper's. The file MEMORY holds what nvidia-smi said of these GPUs, because it takes seconds.
#   lib NVCC                -L and the folder of CUDA's static runtime; nvcc may be a script anywhere, so it is asked
# Exit 1 after a sentence on stderr when there is no answer.
set -u
least=13 # the major version of CUDA that our sources are written for
hopper=90
fail() {
    echo "make: $*" >&2
    exit 1
}
what=$1 nvcc=$2
shift 2

why_not() {
    if ! command -v "$nvcc" >/dev/null; then
        echo "$nvcc is not found"
        return
    fi
    release=$("$nvcc" --version 2>/dev/null | sed -n 's/.*release \([0-9]*\.[0-9]*\).*/\1/p')
    case $release in
    '') echo "$nvcc does not state its CUDA version" ;;
    *) [ "${release%%.*}" -ge $least ] || echo "$nvcc belongs to CUDA $release, but $least is needed" ;;
    esac
}

# Which GPUs these are, without waking a driver. The path of nvidia-smi is where there is no /proc/driver/nvidia (WSL).
gpus_here() {
    command -v nvidia-smi
    sed -n 's/^Model:[[:blank:]]*//p' /proc/driver/nvidia/gpus/*/information 2>/dev/null | sort -u
}
asked_of_gpus() { # memory: a line of architectures, then which GPUs they are of
    here=$(gpus_here)
    [ -n "$here" ] || return
    if [ -e "$1" ] && [ "$(sed 1d "$1")" = "$here" ]; then
        sed -n 1p "$1"
        return
    fi
    said=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | tr -d '. ' | grep -x '[0-9]*' | sort -nu)
    [ -n "$said" ] || return # not remembered: a driver that does not answer now may do so later
    # shellcheck disable=SC2086 # words on purpose
    archs=$(known $said)
    mkdir -p "$(dirname "$1")" && printf '%s\n%s\n' "${archs:=$hopper}" "$here" >"$1"
    echo "$archs"
}
# Those of its arguments that nvcc compiles for; the others are named.
known() {
    all=$("$nvcc" --list-gpu-arch | sed -n 's/^compute_//p')
    kept='' unknown=''
    for n; do
        case "
$all
" in
        *"
${n%[af]}
"*) kept="$kept $n" ;;
        *) unknown="$unknown $n" ;;
        esac
    done
    [ -z "$unknown" ] || echo "make: $nvcc cannot compile for these compute capabilities, so they are left out:$unknown" >&2
    echo "${kept# }"
}

case $what in
why-not) why_not ;;
archs)
    memory=$1
    shift
    if [ $# -gt 0 ]; then
        archs=$(known "$@")
        [ -n "$archs" ] || fail "no compute capability of CUDA_ARCHS='$*' can be compiled; $nvcc --list-gpu-arch lists those that can"
    else
        archs=$(asked_of_gpus "$memory")
        [ -n "$archs" ] || archs=${BUILT:-$hopper}
    fi
    # shellcheck disable=SC2086
    printf '%s\n' $archs | sort -Vu
    ;;
lib)
    for dir in $("$nvcc" --dryrun -c kernels/device.cu 2>&1 | sed -n 's/^#\$ LIBRARIES=//p' | tr -d '"'); do
        dir=$(cd "${dir#-L}" 2>/dev/null && pwd) || continue
        [ -e "$dir/libcudart_static.a" ] && echo "-L$dir" && exit
    done
    fail "$nvcc works, but its folders have no libcudart_static.a; install the whole CUDA toolkit, or make CUDA=0"
    ;;
esac
