#!/bin/bash
# kiln-export --format chunks: what index.json promises (schema/chunks.schema.json), tile tables as files, when they are left out,
# and that only what changed is written.
. tests/e2e/lib.sh
command -v python3 >/dev/null || skip "no python3"
db=$KILN_TMP/b/manifest.db out=$KILN_TMP/b/export/chunks
check() { python3 tests/e2e/chunks.py "$@" || fail "index.json of $1"; }
said() { "$KILN_BIN/kiln-export" "$db" "$@" 2>&1; }
inodes() { (cd "$out" && ls -i ./*.bin | awk '{ print $2, $1 }' | LC_ALL=C sort); }

scene "$KILN_TMP/s" 6000 2 90x60
kiln import "$KILN_TMP/s" "$db" >/dev/null && kiln knn "$db" >/dev/null && kiln prune "$db" >/dev/null &&
    kiln chunk "$db" --max 1000 >/dev/null ||
    fail bake

test_step 'no tables yet: cameras alone' && (
    [[ $(said --format chunks) != *"tile tables"* ]] || fail "a note about tables that nobody made"
    check "$out" 0
); result

planes=$(inodes)
kiln tiles "$db" >/dev/null || fail tiles

test_step 'new tables are written once, and planes stay' && (
    [[ $(said) == *written* && $(said) == *"nothing to do"* ]] || fail "new tables are not written, or twice"
    check "$out" 2
    [ -z "$(LC_ALL=C comm -23 <(echo "$planes") <(inodes))" ] || fail "planes that are there were written again"
); result

test_step 'other tables: theirs come, the old ones go' && (
    before=$(inodes)
    kiln tiles "$db" --profile gsplat-1.5 >/dev/null || fail "tiles of another profile"
    [[ $(said) == *written* ]] || fail "other tables are not written"
    check "$out" 2
    grep -q '"name": "gsplat-1.5"' "$out/index.json" || fail "the profile is the old one"
    [ -z "$(LC_ALL=C comm -23 <(echo "$planes") <(inodes))" ] || fail "planes went with the tables"
    [ "$before" != "$(inodes)" ] || fail "the tables are the old ones"
); result

test_step 'a file of a table that is gone is written again' && (
    py remove_array "$out"
    [[ $(said) == *written* ]] || fail "a missing array was not written again"
    check "$out" 2
); result

test_case 'the same bytes by one worker and by several' && (
    for n in 1 3; do
        kiln export "$db" --format chunks --workers $n --threads $n -o "$KILN_TMP/by$n" >/dev/null || fail "by $n"
    done
    diff -r "$KILN_TMP/by1" "$KILN_TMP/by3" && diff -r "$KILN_TMP/by1" "$out" || fail "other bytes"
); result

test_step 'levels of detail come, and planes of chunks stay' && (
    planes=$(inodes)
    kiln lod "$db" --levels 2 --coarsest 500 >/dev/null && kiln tiles "$db" >/dev/null || fail lod
    [[ $(said) == *written* && $(said) == *"nothing to do"* ]] || fail "levels are not written, or twice"
    check "$out" 2 levels
    [ -z "$(LC_ALL=C comm -23 <(echo "$planes") <(inodes))" ] || fail "planes were written again with the levels"
); result

test_step 'a part of the chunks, and tables of other chunks: no tables, and it is said' && (
    [[ $(said --format chunks --chunks '#0,#1' -o "$KILN_TMP/part") == *"tile tables are left out, because they describe all chunks"* ]] ||
        fail "a part: no note"
    check "$KILN_TMP/part" 0
    [[ $(said --format chunks --layer pruned -o "$KILN_TMP/pruned") != *"tile tables"* ]] ||
        fail "a note about tables of another layer"
    check "$KILN_TMP/pruned" 0
    kiln chunk "$db" --max 2000 >/dev/null || fail "chunk again"
    [[ $(said) == *"tile tables are left out, because the stage tiles is stale; run kiln-tiles first"* ]] ||
        fail "stale tables: no note"
    check "$out" 0
    kiln tiles "$db" >/dev/null && said >/dev/null
    check "$out" 2
); result

test_step 'a name that is no UTF-8 has ? in its place' && (
    python3 -c 'import sqlite3, sys; sqlite3.connect(sys.argv[1], isolation_level=None).execute(
    "UPDATE scene SET name = CAST(x'"'73ff63'"' AS TEXT), up_axis = CAST(x'"'ff'"' AS TEXT)")' "$db" || fail "a name"
    must 0 "$KILN_BIN/kiln-export" "$db" --format chunks -o "$KILN_TMP/named"
    check "$KILN_TMP/named" 2
    grep -q '"name": "s?c"' "$KILN_TMP/named/index.json" ||
        fail "the scene's name: $(grep '"name"' "$KILN_TMP/named/index.json" | head -n 1)"
); result

test_step 'an interrupted export leaves the index, and the next one cleans up' && (
    unnamed() { python3 -c 'import os, sys
text = open("index.json").read()
print(sum(n not in text for n in os.listdir() if n.endswith(".bin")))'; }
    index=$(cat "$out/index.json")
    cp "$db" "$KILN_TMP/before.db"
    for max in 1500 1200; do # each with other planes
        kiln chunk "$db" --max $max >/dev/null || fail "chunk $max"
        KILN_FAULT='unit=3:enospc' must 74 "$KILN_BIN/kiln-export" "$db" --workers 1
        [ "$index" = "$(cat "$out/index.json")" ] && [ -e "$out/index.json.unfinished" ] ||
            fail "the interrupted export changed the index"
        left=$(cd "$out" && unnamed)
        [ "$left" -gt 0 ] && [ "$left" -lt 60 ] || fail "$left files that no index names, of one interrupted export"
    done
    must 0 "$KILN_BIN/kiln-export" "$db"
    check "$out" 0
    [[ $(said) == *"nothing to do"* ]] || fail "the folder is whole and written again"
    KILN_FAULT='unit=0:enospc' must 74 "$KILN_BIN/kiln-export" "$db" --force
    [[ $(said) == *written* ]] || fail "what an interrupted export left is not looked for"
    check "$out" 0
    mkdir "$KILN_TMP/other" && echo '{}' >"$KILN_TMP/other/index.json.unfinished"
    must 2 "$KILN_BIN/kiln-export" "$db" --format chunks -o "$KILN_TMP/other"
    grep -q "holds 'index.json.unfinished', which has a name of this format" "$KILN_TMP/err" ||
        fail "somebody's file: $(cat "$KILN_TMP/err")"
    mv "$KILN_TMP/before.db" "$db" && said --force -w >/dev/null # what lies there is of a later state of the bake
    check "$out" 2
); result

test_case "a stranger's bake: a table whose array is damaged is refused" && (
    py damage "$db" || fail "damage"
    index=$(cat "$out/index.json")
    must 74 "$KILN_BIN/kiln-export" "$db" --format chunks --force
    [ "$index" = "$(cat "$out/index.json")" ] || fail "a failed export changed the index"
    [ -z "$(find "$KILN_TMP" -name '*.tmp.*')" ] || fail "a temporary file was left"
); result
