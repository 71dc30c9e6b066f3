#!/bin/bash
# kiln-render --fast on a GPU: pictures of a kind of their own, measured, the same each time and under a cap, and never taken for
# exact ones.
. tests/gpu/lib.sh
scene "$KILN_TMP/s" 60000 3 640x360
db=$KILN_TMP/m.db
bake_on cuda "$KILN_TMP/s" "$db" --max 4096
images() { digest "$1" | grep '^image '; }
images "$db" >"$KILN_TMP/exact"

on cuda render "$db" --fast
[ "$(field frames_drawn)" = 3 ] || fail "--fast took exact pictures for its own: $(cat "$KILN_TMP/report.json")"
[ "$(field measured)" = 1 ] || fail "of 3 pictures $(field measured) were measured"
awk -v v="$(field least_db)" 'BEGIN { exit !(v == "inf" || v >= 60) }' || fail "$(field least_db) dB from the exact picture"
echo "$(field least_db) dB from the exact picture"
images "$db" >"$KILN_TMP/fast"
[ "$(grep -c ':fast ' "$KILN_TMP/fast")" = 3 ] || fail "$(cat "$KILN_TMP/fast")"
[ "$(cut -d' ' -f3 "$KILN_TMP/exact" "$KILN_TMP/fast" | sort -u | wc -l)" = 6 ] || fail 'a fast picture has the bits of the exact one'
must 0 kiln verify "$db"

# --fast is kept, as any option; drawn anew the bits are the same, under a cap that leaves room for a part of the view, too
"$KILN_BIN/kiln-render" "$db" 2>&1 | grep -q 'nothing to do' || fail 'a second run drew something'
must 0 kiln render "$db" --force
images "$db" | diff "$KILN_TMP/fast" - >&2 || fail 'other fast pictures with --force'
# those of a GPU of another kind, that is of other bits, are no bug: the picture of cam0 becomes the one that is stored for the others
if command -v python3 >/dev/null; then
    python3 - "$db" <<'PY' || fail 'plant'
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
n = db.execute("UPDATE unit_output SET hash = (SELECT o.hash FROM unit_output o JOIN image i JOIN unit u ON u.key = i.key WHERE o.unit = u.id"
               " AND i.camera = 'cam0' AND o.name = 'pixels') WHERE name = 'pixels' AND unit IN (SELECT u.id FROM unit u JOIN image i"
               " ON i.key = u.key)").rowcount
assert n == 3, n
db.commit()
PY
    must 0 kiln render "$db" --force
    images "$db" | diff "$KILN_TMP/fast" - >&2 || fail 'fast pictures of another GPU stay with --force'
fi
images "$db" | diff "$KILN_TMP/fast" - >&2 || fail 'other fast pictures with --force'
must 3 kiln render "$db" --devices cpu # --fast is stored
on cuda render "$db" --cameras "$KILN_TMP/s/cameras.json" --format none
grep '"pixels"' "$KILN_TMP/report.json" >"$KILN_TMP/whole"
on cuda render "$db" --cameras "$KILN_TMP/s/cameras.json" --format none --vram 16M
grep '"pixels"' "$KILN_TMP/report.json" | diff "$KILN_TMP/whole" - >&2 || fail 'other fast pictures under a cap'

# and back: nothing of the fast pictures is left
on cuda render "$db" --no-fast
images "$db" | diff "$KILN_TMP/exact" - >&2 || fail 'the exact pictures are others behind fast ones'
