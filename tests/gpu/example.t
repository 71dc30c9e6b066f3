#!/bin/bash
# The example draws a camera of a bake on a device of one's choice: the same picture on the CPU and on every GPU.
. tests/gpu/lib.sh
unset CUDA_VISIBLE_DEVICES # its devices are numbers of the machine here
draw=${KILN_BIN%/bin}/examples/draw_camera db=$KILN_TMP/s.db
[ -x "$draw" ] || fail "there is no $draw; make gpu-tests builds it"
scene "$KILN_TMP/s" 20000 2 200x120
bake_on cpu "$KILN_TMP/s" "$db" --max 4096
must 0 "$draw" "$db" cam1 -1 "$KILN_TMP/cpu.png"
for gpu in $(nvidia-smi --query-gpu=index --format=csv,noheader); do
    rm -f "$KILN_TMP/gpu.png"
    must 0 "$draw" "$db" cam1 "$gpu" "$KILN_TMP/gpu.png"
    grep -q ' on NVIDIA' "$KILN_TMP/out" || fail "device $gpu: $(cat "$KILN_TMP/out")"
    cmp "$KILN_TMP/cpu.png" "$KILN_TMP/gpu.png" || fail "another picture on device $gpu"
done
[ "$(od -An -tu1 -j1 -N3 "$KILN_TMP/cpu.png" | tr -d ' ')" = 807871 ] || fail 'no PNG'
must 6 "$draw" "$db" cam1 1000 "$KILN_TMP/no.png"
