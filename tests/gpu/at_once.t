#!/usr/bin/env bash
# Pictures that are drawn at once, behind others of their scene: the bits of the CPU's, with the scene in one piece and, where memory
# is too short for that, chunk by chunk.
. tests/gpu/lib.sh
cd "$KILN_TMP" || exit 1
scene s 100000 12 640x400
kiln import s x.db >/dev/null && kiln knn x.db >/dev/null && kiln prune x.db >/dev/null || fail 'bake'
kiln chunk x.db --max 4000 >/dev/null || fail 'chunk'
draw() { # DEVICES FOLDER ARGUMENTS...
    local devices=$1 to=$2; shift 2
    on "$devices" render x.db --cameras s/cameras.json --depth --format npy -o "$to" "$@"
    echo "$to: $(field draw_s) s, at most $(field vram_peak_bytes) bytes of the GPU"
}
draw cpu cpu
draw cuda whole
for mib in 48 36 24; do draw cuda "chunks$mib" --vram "${mib}M"; done
[ "$(find cpu -name '*.npy' | wc -l)" = 24 ] || fail "no 12 pictures with their depths"
for folder in whole chunks*; do diff -r cpu "$folder" || fail "pictures of $folder differ"; done
