#!/bin/bash
# Promise 5 with a GPU: tests/e2e/parent.t, whose `auto` is one then; and its way to look does see CUDA in a worker.
. tests/gpu/lib.sh
KILN_TMP=$KILN_TMP/parent && mkdir -p "$KILN_TMP" && export KILN_TMP
tests/e2e/parent.t || fail 'see above'
scene "$KILN_TMP/w" 12000 3 320x240
rm -f "$KILN_TMP"/w.db*
kiln import "$KILN_TMP/w" "$KILN_TMP/w.db" >/dev/null || fail import
"$KILN_BIN/kiln-knn" --quiet --devices cuda "$KILN_TMP/w.db" >/dev/null & parent=$!
seen=0
while kill -0 $parent 2>/dev/null; do
    for child in $(cat "/proc/$parent/task/$parent/children" 2>/dev/null); do
        tr '\0' ' ' <"/proc/$child/cmdline" 2>/dev/null | grep -q -- '--worker=' || continue # NVML's child may have it too
        ! grep -q 'libcuda\.' "/proc/$child/maps" 2>/dev/null || seen=1
    done
done
wait $parent || fail 'knn on the GPU'
[ $seen = 1 ] || fail 'no worker was seen with libcuda: looking at maps shows nothing here'
nothing_left
