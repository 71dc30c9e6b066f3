#!/bin/bash
# Tiles and pictures of 6 M Gaussians at 3840 x 2160 within 512 MiB of GPU memory, less than half of what the planes alone take,
# are those without a cap. KILN_THOROUGH=1, or SHARED of make gpu-test, runs it; LARGE_SCENE=DIR: a scene made before.
# time-limit: 1200
. tests/gpu/lib.sh
thorough || skip 'a scene of 1.4 GB; set KILN_THOROUGH'
cap=$((512 << 20))
from=${LARGE_SCENE:-$KILN_TMP/s}
[ -e "$from/scene.ply" ] || scene "$from" 6000000 3 3840x2160
bake_to_chunks() {
    on cuda import "$from" "$KILN_TMP/free.db"
    for s in knn prune chunk; do on cuda $s "$KILN_TMP/free.db"; done
}
bake_to_chunks
cp "$KILN_TMP/free.db" "$KILN_TMP/capped.db"
cameras='#0,#1,#2'
for s in tiles render; do
    more=()
    [ $s != tiles ] || more=(--tables "$cameras")
    [ $s != render ] || more=(--format none)
    on cuda $s "$KILN_TMP/free.db" "${more[@]}"
    echo "$s: $(field vram_peak_bytes) bytes of the GPU, $(field wall_s) s"
    on cuda $s "$KILN_TMP/capped.db" "${more[@]}" --vram 512M
    peak=$(field vram_peak_bytes)
    echo "$s --vram 512M: at most $peak bytes, $(field ran_on_cpu_for_memory) operations on the CPU, $(field wall_s) s"
    [ -n "$peak" ] && [ "$peak" -gt 0 ] && [ "$peak" -le $cap ] || fail "$s took $peak bytes of the GPU, more than $cap"
    same "$KILN_TMP/free.db" "$KILN_TMP/capped.db"
done
