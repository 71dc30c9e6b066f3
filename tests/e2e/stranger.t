#!/bin/bash
# Promise 8: a manifest that somebody else made to do harm is refused with one sentence by every program that reads what is wrong
# with it; nothing outside of its folder changes, nothing hangs, and kiln-verify says what it is.
. tests/e2e/lib.sh
WAIT=${KILN_WAIT:-120} # seconds: a watchdog, not a limit
scene "$KILN_TMP/s" 400 2 64x48 --seed 3
mkdir -p "$KILN_TMP/good"
bake "$KILN_TMP/s" "$KILN_TMP/good/m.db" --max 200 --min 50
printf keep >"$KILN_TMP/precious"
PROGRAMS='knn prune chunk tiles render export info verify'
db=$KILN_TMP/bake/m.db
start_over() { rm -rf "$KILN_TMP/bake"; cp -r "$KILN_TMP/good" "$KILN_TMP/bake"; }
# mutate SQL: by a connection that checks nothing
mutate() {
    py mutate "$db" "$1" || fail "mutate: $1"
}
outside() {
    (cd "$KILN_TMP" && find . -path ./bake -prune -o -type f ! -name out ! -name err ! -name tree -print0 |
        sort -z | xargs -0 sha256sum)
}
outside >"$KILN_TMP/tree"
run() {
    local quiet=--quiet
    [ "$1" = verify ] && quiet=
    timeout "$WAIT" "$KILN_BIN/kiln-$1" $quiet "$db" ${2:-} >"$KILN_TMP/out" 2>"$KILN_TMP/err"
}
# refused SAYS PROGRAM...: exit 3 or 74, one sentence, nothing outside written, no lock left
refused() {
    local says=$1 p got; shift
    for p in "$@"; do
        case $p in knn|prune|chunk|tiles|render|export) run "$p" --force ;; *) run "$p" ;; esac
        got=$?
        [ $got = 3 ] || [ $got = 74 ] || fail "$what: kiln-$p: exit $got: $(head -3 "$KILN_TMP/err")"
        grep -qF -- "$says" "$KILN_TMP/err" || fail "$what: kiln-$p does not say '$says': $(cat "$KILN_TMP/err")"
        [ "$p" = verify ] || [ "$(grep -c . "$KILN_TMP/err")" = 1 ] ||
            fail "$what: kiln-$p: not one sentence: $(cat "$KILN_TMP/err")"
        [ ! -e "$db.lock" ] || fail "$what: kiln-$p left its lock"
    done
    outside | cmp -s - "$KILN_TMP/tree" || fail "$what: something outside of the bake changed"
}
# stranger WHAT SQL SAYS PROGRAM...
stranger() { what=$1; start_over; mutate "$2"; shift 2; refused "$@"; }
# strange WHAT SQL SAYS PROGRAM...: a case of it
strange() {
    test_case "$1" && (
        stranger "$@"
    ); result
}

test_case 'the bake itself is sound' && (
    start_over; run verify || fail "the bake itself: $(cat "$KILN_TMP/err")"
); result

strange "a name that leads out" "UPDATE camera SET name = '../../ESCAPED/evil' WHERE name = 'cam0'" "leaves its folder by '..'" \
    tiles render info verify

test_case 'kiln-render wrote nothing outside of the bake' && (
    [ ! -e "$KILN_TMP/ESCAPED" ] || fail "kiln-render wrote outside of the bake"
); result

strange "no pixels" "UPDATE camera SET width = 0, height = 0" "has no pixels: 0 x 0" tiles render info verify
strange "scales of one component" "UPDATE plane SET components = 1, raw_bytes = raw_bytes / 3 WHERE name = 'log_scales'" \
    "'log_scales' is f32 x 1" prune chunk tiles render export info verify
strange "degree 4 over shN of degree 3" "UPDATE layer SET sh_degree = 4 WHERE kind <> 'spacing'" "'shN' is f32 x 45" tiles render \
    export info verify
strange "a path that leads out" "UPDATE image SET path = '/etc/passwd'" "absolute path" info verify
strange "a band too long" "UPDATE tile_band SET row1 = 4000000000" "but row 0 must follow" render info verify
strange "a trigger" "CREATE TRIGGER t AFTER INSERT ON run BEGIN DELETE FROM camera; END" "its trigger 't' differs" $PROGRAMS
strange "an endless view" "DROP TABLE quarantine;
    CREATE VIEW quarantine AS WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r)
    SELECT zeroblob(16) AS key, 'knn' AS stage, 'u' AS name, 1 AS attempts, 'cpu' AS device, 'r' AS reason, n AS failed_ns FROM r" \
    "'quarantine' differs" $PROGRAMS
strange "an index of its own" "CREATE UNIQUE INDEX own ON run (stage)" "its index 'own' differs" $PROGRAMS
strange "a stored parameter" "INSERT OR REPLACE INTO parameter VALUES ('chunk', 'max', '99999999')" "--reset forgets it" chunk
strange "stored parameters that do not fit" \
    "INSERT OR REPLACE INTO parameter VALUES ('chunk', 'max', '10'), ('chunk', 'min', '20')" "--reset forgets it" chunk
strange "a stored text" "INSERT OR REPLACE INTO parameter VALUES ('render', 'near', 'nowhere')" "--reset forgets it" render
strange "rows beyond the source" "UPDATE scene SET rows_read = 5, rows_dropped = 0" "source row" export verify
strange "more rows than source_row can name" "UPDATE scene SET rows_read = 9223372036854775807" "at most 4294967295" tiles render \
    export info verify
strange "a box that its means leave" "UPDATE chunk SET box_max_x = box_min_x" "its means span" export verify
strange "a box that its means do not fill" "UPDATE chunk SET box_max_y = box_max_y + 1, reach_max_y = reach_max_y + 1" \
    "its means span" export verify
strange "no scene" "DELETE FROM scene" "there is no scene" verify

# right hashes over wrong values
# rehash LAYER PLANE first|last HEX: that value of every such plane becomes these 4 bytes
rehash() {
    py rehash "$db" "$@" || fail "$what"
}

test_case 'NaN in the means' && (
    what="NaN in the means"; start_over; rehash % means first 0000c07f
    refused "plane 'means' holds nan" knn prune chunk tiles render export verify
); result

# a partial import has read fewer rows than its source has: the blocks' numbers bound the rows, and what memory they are given
test_step 'a row behind the blocks of a partial import' && (
    what="a row behind the blocks of a partial import"; start_over; rehash baked source_row last faffffff
    mutate "UPDATE stage SET state = 'partial' WHERE name = 'import'"
    must 3 "$KILN_BIN/kiln-export" --quiet "$db" --ram 128M --allow-partial
    grep -q 'the layer names source row 4294967290, but its source has 65536 rows' "$KILN_TMP/err" ||
        fail "$what: $(cat "$KILN_TMP/err")"
); result

test_step 'a block as far as rows go' && (
    what="a block as far as rows go"
    mutate "UPDATE chunk SET name = '00065535' WHERE layer IN (SELECT id FROM layer WHERE kind = 'source')"
    must 74 "$KILN_BIN/kiln-export" --quiet "$db" --ram 128M --allow-partial
    grep -q 'source row 4294967290 occurs twice' "$KILN_TMP/err" || fail "$what: $(cat "$KILN_TMP/err")"
); result

test_case 'a block that has no number' && (
    what="a block that has no number"
    mutate "UPDATE chunk SET name = '65536' WHERE layer IN (SELECT id FROM layer WHERE kind = 'source')"
    must 3 "$KILN_BIN/kiln-export" --quiet "$db" --allow-partial
    grep -q "'65536', which is not the number of a block" "$KILN_TMP/err" || fail "$what: $(cat "$KILN_TMP/err")"
); result

test_case 'a WAL of random bytes' && (
    what="a WAL of random bytes"; start_over; head -c 300000 /dev/urandom >"$db-wal"
    for p in info verify; do run $p || fail "$what: kiln-$p: exit $?: $(cat "$KILN_TMP/err")"; done # never valid, so never read
); result

test_case 'a WAL of another schema' && (
    what="a WAL of another schema"; start_over
    py other_schema "$db" || fail "$what"
    refused "differs" info verify
); result

test_case 'a link for a WAL' && (
    what="a link for a WAL"; start_over; ln -s ../precious "$db-wal"; refused "is not a regular file" $PROGRAMS
); result

test_case 'a pipe for a journal' && (
    what="a pipe for a journal"; start_over; mkfifo "$db-journal"; refused "is not a regular file" $PROGRAMS
); result

test_case 'a link for a lock' && (
    what="a link for a lock"; start_over; ln -s ../precious "$db.lock"
    for p in knn render; do run $p --force && got=0 || got=$?; [ $got = 3 ] || fail "$what: $(cat "$KILN_TMP/err")"; done
    outside | cmp -s - "$KILN_TMP/tree" || fail "$what: it was written through"
); result

# links inside the bake's folder, where a stage writes without being told: refused before anything is written, and -o goes past it
mkdir "$KILN_TMP/elsewhere"
# leads_out PLACE PROGRAM WORDS...: PLACE becomes a link to a folder outside (to a file where it has a suffix)
leads_out() {
    what="a link for $1 of kiln-$2"; local place=$1 p=$2 to; shift 2
    start_over; rm -rf "$KILN_TMP/bake/$place"; mkdir -p "$(dirname "$KILN_TMP/bake/$place")"
    case $place in *.ply|*.png) to=$KILN_TMP/precious ;; *) to=$KILN_TMP/elsewhere ;; esac
    ln -s "$to" "$KILN_TMP/bake/$place"
    for force in '' --force; do
        must 3 "$KILN_BIN/kiln-$p" --quiet "$db" "$@" $force
        grep -q "^kiln-$p: '[^']*/$place' is a link that .*remove the link, or name the place with -o$" "$KILN_TMP/err" ||
            fail "$what: $(cat "$KILN_TMP/err")"
        [ "$(grep -c . "$KILN_TMP/err")" = 1 ] || fail "$what: not one sentence: $(cat "$KILN_TMP/err")"
    done
    [ -z "$(ls -A "$KILN_TMP/elsewhere")" ] && outside | cmp -s - "$KILN_TMP/tree" || fail "$what: it was written through"
}
# linked PLACE PROGRAM WORDS...: a case of it
linked() {
    test_case "a link for $1 of kiln-${*:2}" && (
        leads_out "$@"
    ); result
}
linked renders render
linked renders/cam0.png render
linked renders/cam1.depth.png render --depth
linked export export
linked export/scene.ply export
linked export export --format chunks
linked export/chunks export --format chunks

test_case 'a place that the user names' && (
    start_over
    what="a place that the user names"; ln -s ../elsewhere "$KILN_TMP/bake/mine"
    must 0 "$KILN_BIN/kiln-export" --quiet "$db" --format chunks -o "$KILN_TMP/bake/mine"
    must 0 "$KILN_BIN/kiln-render" --quiet "$db" -o "$KILN_TMP/bake/mine"
    [ -e "$KILN_TMP/elsewhere/index.json" ] && [ -e "$KILN_TMP/elsewhere/cam0.png" ] || fail "$what: nothing is there"
); result

rm -rf "$KILN_TMP/elsewhere"

test_case 'a bake that is reached by links' && (
    what="a bake that is reached by links"; start_over; rm -rf "$KILN_TMP/bake/renders" "$KILN_TMP/bake/export"
    ln -s bake "$KILN_TMP/way"
    for p in render export; do must 0 "$KILN_BIN/kiln-$p" --quiet "$KILN_TMP/way/m.db"; done
    [ -e "$KILN_TMP/bake/renders/cam0.png" ] && [ -e "$KILN_TMP/bake/export/scene.ply" ] || fail "$what: nothing is there"
    rm "$KILN_TMP/way"
); result

test_case 'a journal that names a file' && (
    what="a journal that names a file"; start_over
    py journal "$db" "$KILN_TMP/precious" || fail "$what"
    refused "names another file" $PROGRAMS
    [ -e "$KILN_TMP/precious" ] || fail "$what: it was deleted"
); result

test_case 'a plain VACUUM' && (
    what="a plain VACUUM"; start_over; mutate "VACUUM; ANALYZE"; for p in info verify render; do run $p ||
        fail "$what: $(cat "$KILN_TMP/err")"; done
); result
