#!/bin/bash
# Bakes by the CPU and by a GPU: equal layers and tile tables, pictures of at least 85 dB of each other.
# time-limit: 900
. tests/gpu/lib.sh
compare() { # NAME SCENE [options of chunk]
    local name=$1 from=$2 begun; shift 2
    begun=$SECONDS
    bake_on cpu "$from" "$KILN_TMP/$name.cpu.db" "$@"
    echo "$name: $((SECONDS - begun)) s on the CPU"
    begun=$SECONDS
    bake_on cuda "$from" "$KILN_TMP/$name.cuda.db" "$@"
    echo "$name: $((SECONDS - begun)) s on the GPU"
    case $(field device) in *GPU-*) ;; *) fail "the GPU did not bake $name: $(field device)" ;; esac
    same_tables "$KILN_TMP/$name.cpu.db" "$KILN_TMP/$name.cuda.db"
    same_pictures "$KILN_TMP/$name.cpu.db" "$KILN_TMP/$name.cuda.db"
    rm -rf "$KILN_TMP/$name".*
}
scene "$KILN_TMP/small" 20000 3 320x200
compare small "$KILN_TMP/small" --max 1024
if thorough; then
    scene "$KILN_TMP/large" 400000 12 1920x1080
    compare large "$KILN_TMP/large"
fi
[ -d "$KILN_SHARED/scenes/chair" ] && [ -d "$KILN_SHARED/scenes/colmap_sculpture" ] || skip 'small bakes are equal; no scenes in KILN_SHARED'
compare chair "$KILN_SHARED/scenes/chair"
compare chair_2048 "$KILN_SHARED/scenes/chair" --max 2048
compare sculpture "$KILN_SHARED/scenes/colmap_sculpture"
