#!/bin/bash
# CUDA_VISIBLE_DEVICES as CUDA's guide has it; the run record names the GPU; nothing is left on it afterwards.
. tests/gpu/lib.sh
unset CUDA_VISIBLE_DEVICES # what this machine gives us is not what is asked here
mapfile -t uuids < <(nvidia-smi --query-gpu=uuid --format=csv,noheader)
db=$KILN_TMP/x.db
scene "$KILN_TMP/s" 5000 1 64x64
kiln import "$KILN_TMP/s" "$db" --devices cpu >/dev/null || fail import
# gpu UUID VISIBLE DEVICES: with that CUDA_VISIBLE_DEVICES, --devices DEVICES computes on the GPU of that UUID
gpu() {
    (export CUDA_VISIBLE_DEVICES=$2 && on "$3" knn "$db" --force --threads 7) || exit 1
    case $(field device) in *"$1"*) ;; *) fail "CUDA_VISIBLE_DEVICES='$2' --devices $3 gives $(field device), not $1" ;; esac
    kiln info "$db" --json | grep -q "\"device\": .*$1" || fail "the run record does not name $1"
}
# hidden VISIBLE: --devices cuda ends with 6 and auto takes the CPU
hidden() {
    must 6 env CUDA_VISIBLE_DEVICES="$1" "$KILN_BIN/kiln-knn" --quiet "$db" --force --devices cuda
    (export CUDA_VISIBLE_DEVICES=$1 && on auto knn "$db" --force) || exit 1
    case $(field device) in cpu*) ;; *) fail "CUDA_VISIBLE_DEVICES='$1' --devices auto gives $(field device)" ;; esac
}
on auto knn "$db" --threads 7
case $(field device) in *"${uuids[0]}"*) ;; *) fail "auto gives $(field device)" ;; esac
gpu "${uuids[0]}" 0 cuda
gpu "${uuids[0]}" "${uuids[0]}" cuda
gpu "${uuids[0]}" "${uuids[0]:0:16}" auto
gpu "${uuids[0]}" 0,-1,1 all
hidden ''
hidden -1
must 6 env CUDA_VISIBLE_DEVICES=0 "$KILN_BIN/kiln-knn" --quiet "$db" --force --devices 1
if [ ${#uuids[@]} -gt 1 ]; then
    gpu "${uuids[1]}" 1 cuda
    gpu "${uuids[1]}" "${uuids[1]}" auto
    gpu "${uuids[1]}" 1,0 0
    gpu "${uuids[0]}" 1,0 1
    gpu "${uuids[1]}" 0,1 "${uuids[1]}"
else
    echo 'one GPU: the second one was not asked for'
fi
on auto knn "$db" --force
case $(field device) in *GPU-*) ;; *) fail "auto, where all work is worth a GPU, gives $(field device)" ;; esac
unset KILN_GPU_MS
on auto knn "$db" --force
case $(field device) in cpu*) ;; *) fail "little work opens a GPU: $(field device)" ;; esac
nothing_left
