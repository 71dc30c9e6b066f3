#!/bin/bash
# PLY -> manifest -> PLY: every float of every real trained PLY comes back bit-identical, unknown columns included.
. tests/e2e/lib.sh
scene "$KILN_TMP/s" 3000 1 64x64
files=("$KILN_TMP/s/scene.ply")
if [ -n "$KILN_SHARED" ]; then
    files+=("$KILN_SHARED/scenes/chair/chair.ply" "$KILN_SHARED"/scenes/files/{brush_leica_8192,inria_train_1000,three_points}.ply)
fi
for f in "${files[@]}"; do
    test_case "${f##*/} comes back bit by bit" && (
        rm -f "$KILN_TMP"/x.db* "$KILN_TMP/x.ply"
        kiln import "$f" "$KILN_TMP/x.db" >/dev/null || fail "import $f"
        kiln export "$KILN_TMP/x.db" --format ply --layer source -o "$KILN_TMP/x.ply" >/dev/null || fail "export $f"
        rows() { LC_ALL=C sed '1,/^end_header\r\{0,1\}$/d' "$1"; } # the data behind the header
        cmp <(rows "$f") <(rows "$KILN_TMP/x.ply") || fail "$f came back different"
    ); result
done
