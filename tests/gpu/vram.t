#!/bin/bash
# A bake within 128 MiB of GPU memory is the bake without a cap. KILN_THOROUGH=1, or SHARED of make gpu-test, runs it.
# time-limit: 900
. tests/gpu/lib.sh
thorough || skip 'a large scene; set KILN_THOROUGH'
cap=$((128 << 20))
within_cap() {
    local peak; peak=$(field vram_peak_bytes)
    echo "$1: at most $peak bytes of the GPU, $(field ran_on_cpu_for_memory) operations on the CPU, $(field wall_s) s"
    [ -n "$peak" ] && [ "$peak" -le $cap ] || fail "$1 took $peak bytes of the GPU, more than $cap"
}
uncapped() { echo "$1: $(field vram_peak_bytes) bytes of the GPU, $(field wall_s) s"; }
scene "$KILN_TMP/s" 1000000 16 1920x1080
LOOK=uncapped bake_on cuda "$KILN_TMP/s" "$KILN_TMP/free.db"
EACH='--vram 128M' LOOK=within_cap bake_on cuda "$KILN_TMP/s" "$KILN_TMP/capped.db"
[ "$(field vram_peak_bytes)" -gt 0 ] || fail 'the capped pictures were not drawn by the GPU'
same "$KILN_TMP/free.db" "$KILN_TMP/capped.db"
