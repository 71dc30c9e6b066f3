#!/bin/bash
# Every format has the same bytes from the CPU and from a GPU.
. tests/gpu/lib.sh
scene "$KILN_TMP/s" 40000 2 320x200
bake_on cpu "$KILN_TMP/s" "$KILN_TMP/x.db"
kiln lod "$KILN_TMP/x.db" --devices cpu >/dev/null || fail lod
for format in $("$KILN_BIN/kiln-export" --list-formats | awk '{ print $1 }'); do
    for device in cpu cuda; do
        mkdir -p "$KILN_TMP/$device/$format"
        kiln export "$KILN_TMP/x.db" --format "$format" -o "$KILN_TMP/$device/$format/" --devices $device >/dev/null || fail "$format on $device"
    done
    diff -rq "$KILN_TMP/cpu/$format" "$KILN_TMP/cuda/$format" || fail "$format: another file from the GPU"
done
