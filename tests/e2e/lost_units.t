#!/bin/bash
# Nothing to do, but for one result among many that is missing or changed: it alone is made again. So many that all are found
# in one pass over the table (schema/units_find.h), among them cameras of one place, which have one unit.
. tests/e2e/lib.sh
command -v python3 >/dev/null || skip "no python3"
cd "$KILN_TMP" || exit 1
kiln generate scene s --gaussians 1000 --cameras 40 --size 32x24 --quiet || fail "scene"
py shared_place || fail "cameras"
kiln import s m.db --quiet || fail "import"
for s in knn prune chunk tiles render; do kiln $s m.db --quiet || fail "$s"; done
before=$(digest m.db)
fresh() { must 0 "$KILN_BIN/kiln-$1" m.db; grep -q 'nothing to do' out err || fail "$1 is not fresh: $(cat out err)"; }
sql() { python3 -c 'import sqlite3, sys
c = sqlite3.connect("m.db"); c.execute("PRAGMA foreign_keys = 1"); assert c.execute(sys.argv[1]).rowcount >= 1; c.commit()' "$1" || fail "$1"; }

test_case 'nothing to do' && (
    fresh tiles; fresh render
); result

test_case 'a count that is missing is made again, alone' && (
    sql "DELETE FROM unit WHERE name = 'pairs of cam20'"
    must 0 kiln tiles m.db --json
    grep -q '"done": 1,' out || fail "tiles made something else than the one count: $(grep -o '"units".*' out)"
    fresh tiles
); result

test_case 'pictures that are missing or changed are drawn again, alone' && (
    rm renders/cam7.png && echo changed >>renders/cam30.png
    must 0 kiln render m.db --json --overwrite
    grep -q '"done": 2,' out || fail "render drew something else than two pictures: $(grep -o '"units".*' out)"
    fresh render
); result

test_case 'the picture of a place that cameras share' && (
    sql "DELETE FROM unit WHERE name = 'camera cam2'"
    must 0 kiln render m.db
    fresh render
); result

test_case 'the bake stays the same' && (
    [ "$before" = "$(digest m.db)" ] || fail "the bake is another one"
); result
