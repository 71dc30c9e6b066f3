#!/bin/bash
# --up: round which axis the synthetic cameras of a scene without any stand. It is kept, and bakes of before it stay fresh.
. tests/e2e/lib.sh
command -v python3 >/dev/null || skip "no python3 to look at cameras with"
db=$KILN_TMP/m.db
ups() { # the axis that is up in all pictures, and that of the scene row
    python3 - "$db" <<'P' || fail "up is not what it should be"
import json, sqlite3, struct, sys
db = sqlite3.connect('file:' + sys.argv[1] + '?mode=ro', uri=True)
named = {(a, s): ('-' if s < 0 else '') + 'xyz'[a] for a in range(3) for s in (1, -1)}
seen = set()
for row in db.execute('SELECT r10, r11, r12 FROM camera'):
    up = [-v for v in row]  # y points down in a picture
    axis = max(range(3), key=lambda a: abs(up[a]))
    assert abs(up[axis]) > 0.9, up
    seen.add(named[axis, 1 if up[axis] > 0 else -1])
print(*sorted(seen), db.execute('SELECT up_axis FROM scene').fetchone()[0])
P
}
kiln generate points "$KILN_TMP/p" --gaussians 500 >/dev/null || fail generate
cloud=$KILN_TMP/p/points.ply
must 0 kiln import "$cloud" "$db"
[ "$(ups)" = '-y ' ] || fail "without --up it is '$(ups)'"
for axis in z -z x -x y; do
    must 0 kiln import "$cloud" "$db" --up "$axis"
    [ "$(ups)" = "$axis $axis" ] || fail "--up $axis gives '$(ups)'"
done
# remembered, forgotten
must 0 "$KILN_BIN/kiln-import" "$cloud" "$db"
grep -q 'nothing to do' "$KILN_TMP/err" && [ "$(ups)" = 'y y' ] || fail "--up is not kept: $(ups)"
must 0 kiln import "$cloud" "$db" --reset
[ "$(ups)" = '-y ' ] || fail "--reset leaves '$(ups)'"
must 2 kiln import "$cloud" "$db" --up w
exit 0
