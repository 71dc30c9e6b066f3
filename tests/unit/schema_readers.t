#!/usr/bin/env bash
# The two readers of schema/SCHEMA.md, cut out of the page, give kiln-verify's digests and agree with each other; the
# page's tables of planes and of layers are planes.def and layers.def. The programs know the last version in manifest.sql.
set -u
page=schema/SCHEMA.md
. tests/cases.sh
: "${KILN_BIN:=$PWD/build/bin}"
[ -n "${KILN_TMP:-}" ] || { KILN_TMP=$(mktemp -d); at_exit 'rm -rf "$KILN_TMP"'; }
block() { sed -n "/^\`\`\`$1\$/,/^\`\`\`\$/p" "$page" | sed '1d;$d'; } # language of the fence

test_case 'the table of planes is planes.def' && (
    # planes.def: PLANE(name, TYPE, components, "meaning") -> | `name` | type | components | meaning |
    sed -n 's/^PLANE(\([^,]*\), \([^,]*\), \([^,]*\), "\(.*\)")$/| `\1` | \L\2\E | \3 | \4 |/p' schema/planes.def |
        sed 's/ | 0 | / | 3 ((d + 1)^2 - 1) | /' >"$KILN_TMP/planes"
    [ -s "$KILN_TMP/planes" ] || fail 'no planes in planes.def'
    sed -n '/^<!-- planes -->$/,/^<!-- end of planes -->$/p' "$page" | sed '1,3d;$d' | diff "$KILN_TMP/planes" - ||
        fail "$page: another table of planes than planes.def"
); result

test_case 'the table of layers is layers.def' && (
    # layers.def: LAYER(kind, stage, made, FORM, "what") -> | `kind` | stage | form | what |
    sed -n 's/^LAYER(\([^,]*\), \([^,]*\), [^,]*, \([^,]*\), "\(.*\)")$/| `\1` | \2 | \L\3\E | \4 |/p' schema/layers.def \
    >"$KILN_TMP/layers"
    [ -s "$KILN_TMP/layers" ] || fail 'no layers in layers.def'
    sed -n '/^<!-- layers -->$/,/^<!-- end of layers -->$/p' "$page" | sed '1,3d;$d' | diff "$KILN_TMP/layers" - ||
        fail "$page: another table of layers than layers.def"
); result

test_case 'a version of the schema that only its text knows' && (
    # A version of the schema that only its text knows: every program would call every manifest unsound.
    last=$(sed -n 's/^-- VERSION \([0-9]*\).*/\1/p' schema/manifest.sql | tail -n 1)
    grep -q "KILN_SCHEMA_VERSION = $last," schema/manifest_internal.h ||
        fail "schema/manifest.sql ends with VERSION $last, which is not KILN_SCHEMA_VERSION in schema/manifest_internal.h"
    grep -qF -- "-- VERSION $last\"" schema/guard.c ||
        fail "schema/guard.c does not look for the line VERSION $last of manifest.sql"
); result

# A manifest with several chunks, several tile tables and a camera name with a blank in it.
db=$KILN_TMP/manifest.db
step() { "$KILN_BIN/kiln-$1" --quiet "${@:2}" >"$KILN_TMP/log" 2>&1 || { cat "$KILN_TMP/log"; fail "kiln-$1 failed"; }; }
step generate scene "$KILN_TMP/scene" --gaussians 3000 --cameras 3 --size 200x120
step import "$KILN_TMP/scene" "$db"
step knn "$db"
step prune "$db"
step chunk "$db" --max 512
step lod "$db"
step tiles "$db"
if command -v sqlite3 >/dev/null; then
    sqlite3 "$db" "UPDATE tile_table SET camera = 'a 100% view' WHERE id = 1; UPDATE camera SET name = 'a 100% view' WHERE name NOT IN (SELECT camera FROM tile_table)" ||
        fail 'cannot rename a camera'
fi
"$KILN_BIN/kiln-verify" --digest "$db" | grep -v '^image ' >"$KILN_TMP/want" || fail 'no digests'

test_case 'digests of all kinds' && (
    grep -q '^layer baked ' "$KILN_TMP/want" || fail 'no baked layer'
    grep -q '^layer levels ' "$KILN_TMP/want" || fail 'no levels'
    [ "$(grep -c '^table ' "$KILN_TMP/want")" -eq 3 ] || fail 'not three tables'
); result

block c >"$KILN_TMP/reader.c"
block python >"$KILN_TMP/reader.py"
${CC:-gcc} -std=gnu11 -O2 -Wall -Wextra -Werror -Wno-sign-compare "$KILN_TMP/reader.c" -lsqlite3 -lzstd -lxxhash -lm -o \
    "$KILN_TMP/reader" ||
    fail 'the reader in C does not compile'
"$KILN_TMP/reader" "$db" >"$KILN_TMP/c.out" 2>"$KILN_TMP/c.err" || { cat "$KILN_TMP/c.err"; fail 'the reader in C failed'; }

test_case "the reader in C gives kiln-verify's digests" && (
    sort "$KILN_TMP/c.out" | diff "$KILN_TMP/want" - || fail 'the reader in C gives other digests'
    [ "$(grep -c '^chunk /' "$KILN_TMP/c.err")" -eq 3 ] || fail 'the reader in C found no Gaussians'
); result

test_case 'the reader in Python gives the same' && (
    command -v python3 >/dev/null || skip 'no python3'
    python3 "$KILN_TMP/reader.py" "$db" >"$KILN_TMP/py.out" 2>"$KILN_TMP/py.err" ||
        { cat "$KILN_TMP/py.err"; fail 'the reader in Python failed'; }
    sort "$KILN_TMP/py.out" | diff "$KILN_TMP/want" - || fail 'the reader in Python gives other digests'
    diff "$KILN_TMP/c.err" "$KILN_TMP/py.err" || fail 'the two readers see other Gaussians'
); result

test_case 'both refuse a blob that is not what its hash says' && (
    command -v sqlite3 >/dev/null || skip 'no sqlite3'
    sqlite3 "$db" "UPDATE blob SET hash = zeroblob(16) WHERE hash = (SELECT hash FROM tile_data WHERE name = 'visible_slot' LIMIT 1);
                   UPDATE tile_segment SET hash = zeroblob(16) WHERE hash NOT IN (SELECT hash FROM blob)" || fail 'cannot damage'
    ! "$KILN_TMP/reader" "$db" >/dev/null 2>&1 || fail 'the reader in C takes a wrong hash'
    ! python3 "$KILN_TMP/reader.py" "$db" >/dev/null 2>&1 || fail 'the reader in Python takes a wrong hash'
); result
