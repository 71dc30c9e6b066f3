#!/bin/bash
# The example draws a camera of a bake on a device of one's choice: the same picture on the CPU and on every GPU.
. tests/gpu/lib.sh
unset CUDA_VISIBLE_DEVICES # its devices are numbers of the machine here
draw=${KILN_BIN%/bin}/examples/draw_camera db=$KILN_TMP/s.db
[ -x "$draw" ] || fail "there is no $draw; make gpu-tests builds it"
scene "$KILN_TMP/s" 20000 2 200x120
bake_on cpu "$KILN_TMP/s" "$db" --max 4096
must 0 "$draw" "$db" cam1 -1 "$KILN_TMP/cpu.ppm"
for gpu in $(nvidia-smi --query-gpu=index --format=csv,noheader); do
    rm -f "$KILN_TMP/gpu.ppm"
    must 0 "$draw" "$db" cam1 "$gpu" "$KILN_TMP/gpu.ppm"
    grep -q ' on NVIDIA' "$KILN_TMP/out" || fail "device $gpu: $(cat "$KILN_TMP/out")"
    cmp "$KILN_TMP/cpu.ppm" "$KILN_TMP/gpu.ppm" || fail "another picture on device $gpu"
done
[ "$(head -c 15 "$KILN_TMP/cpu.ppm" | tr '\n' ' ')" = 'P6 200 120 255 ' ] || fail 'no PPM of 200 x 120'
must 6 "$draw" "$db" cam1 1000 "$KILN_TMP/no.ppm"
