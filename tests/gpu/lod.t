#!/usr/bin/env bash
# kiln-lod on a GPU: the CPU's bits, of levels, of what they are weighted by, and of refined ones.
. tests/gpu/lib.sh
scene "$KILN_TMP/s" 60000 6 640x400
kiln import "$KILN_TMP/s" "$KILN_TMP/base.db" >/dev/null && kiln knn "$KILN_TMP/base.db" >/dev/null && kiln prune "$KILN_TMP/base.db" >/dev/null &&
    kiln chunk "$KILN_TMP/base.db" --max 4096 >/dev/null || fail "bake"
# both NAME ARGUMENTS...: the same on both devices
both() {
    local name=$1 devices; shift
    for devices in cpu cuda; do
        cp "$KILN_TMP/base.db" "$KILN_TMP/$name.$devices.db" || fail copy
        on "$devices" lod "$KILN_TMP/$name.$devices.db" "$@"
        echo "$name on $devices: $(field wall_s) s, at most $(field vram_peak_bytes) bytes of the GPU"
    done
    same "$KILN_TMP/$name.cpu.db" "$KILN_TMP/$name.cuda.db"
}
both levels
[ "$(field vram_peak_bytes)" -gt 0 ] || fail "cameras were not looked through on the GPU"
both tight --vram 16M # in slabs, or on the CPU where not even they fit
[ "$(field vram_peak_bytes)" -le $((16 << 20)) ] || fail "more than 16 MiB were taken"
both refined --refine 5
grep -q '^layer levels' < <(digest "$KILN_TMP/levels.cuda.db") || fail "there are no levels"
grep -q '^layer visibility' < <(digest "$KILN_TMP/levels.cuda.db") || fail "there is no visibility"
nothing_left
