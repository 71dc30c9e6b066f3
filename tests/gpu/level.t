#!/usr/bin/env bash
# Levels of detail on a GPU: chunks that a camera could see and does not draw are hidden in the store, and the pictures and tables are
# those of the CPU. Several levels one after the other, a mixed cut, and with so little device memory that it is done in parts.
. tests/gpu/lib.sh
cd "$KILN_TMP" || exit 1
pixels() { sed -n 's/.*"pixels": "\([0-9a-f]*\)".*/\1/p' report.json; }
scene s 60000 9 645x401
kiln import s x.db >/dev/null && kiln knn x.db >/dev/null && kiln prune x.db >/dev/null && kiln chunk x.db --max 4000 >/dev/null || fail 'bake'
kiln lod x.db >/dev/null || fail 'kiln-lod'
for level in 0 1 3 7 dB:25; do
    on cpu render x.db --cameras s/cameras.json --format none --level "$level"
    pixels >cpu.pixels
    [ "$(sort -u cpu.pixels | wc -l)" = 9 ] || fail "level $level: no 9 digests"
    for more in '' '--vram 24M'; do
        # shellcheck disable=SC2086 # words on purpose
        on cuda render x.db --cameras s/cameras.json --format none --level "$level" $more
        pixels | cmp - cpu.pixels || fail "level $level: digests differ, with '$more'"
    done
done
on cuda render x.db --levels-against cuda --format none
grep -o '"least": [0-9.]*' report.json >cuda.least
on cpu render x.db --levels-against cpu --format none
grep -o '"least": [0-9.]*' report.json | cmp - cuda.least || fail "levels are measured otherwise: $(cat cuda.least)"
cp x.db y.db
kiln tiles x.db --level 2 --devices cpu >/dev/null && kiln tiles y.db --level 2 --devices cuda >/dev/null || fail 'kiln-tiles'
same x.db y.db
