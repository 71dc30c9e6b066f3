#!/bin/bash
# A changed value makes the chunk again that has its row, and no other, though the rows of each chunk come from all blocks. What
# comes out is what a clean bake has, with little memory and over several hosts too.
. tests/e2e/lib.sh
command -v python3 >/dev/null || skip "no python3"
# units LIST: how many units of this list the last chunk computed
units() { python3 -c 'import json, sys
print(sum(l["units"] for l in json.load(open(sys.argv[1])).get("lists", []) if l["what"] == sys.argv[2]))' "$KILN_TMP/report" "$1"; }
chunks() { "$KILN_BIN/kiln-chunk" "$@" --quiet --json >"$KILN_TMP/report" || fail "chunk $*"; }
upto() { kiln import "$1" "$2" >/dev/null && kiln knn "$2" >/dev/null && kiln prune "$2" >/dev/null || fail "$1 up to chunk"; }

db=$KILN_TMP/a.db
scene "$KILN_TMP/s" 140000 2 90x60
upto "$KILN_TMP/s" "$db"
chunks "$db" --max 4096

test_case 'a first bake sums up each block and cuts all chunks' && (
    [ "$(units "summing rows")" = 3 ] && [ "$(units "cutting chunks")" -gt 30 ] || fail "a first bake: $(cat "$KILN_TMP/report")"
); result

cp "$db" "$KILN_TMP/first.db" && cp "$KILN_TMP/s/scene.ply" "$KILN_TMP/first.ply"

test_case 'one value: its block and its chunk, and what a clean bake has' && (
    edit_ply "$KILN_TMP/s/scene.ply" f_rest_7 70000 'v + 0.25'
    upto "$KILN_TMP/s" "$db"
    chunks "$db"
    [ "$(units "summing rows")" = 1 ] && [ "$(units "cutting chunks")" = 1 ] || fail "one value: $(cat "$KILN_TMP/report")"
    upto "$KILN_TMP/s" "$KILN_TMP/clean.db"
    chunks "$KILN_TMP/clean.db" --max 4096
    same "$db" "$KILN_TMP/clean.db"
); result

test_case 'back to the first values: all of it is there' && (
    cp "$KILN_TMP/first.ply" "$KILN_TMP/s/scene.ply"
    upto "$KILN_TMP/s" "$db"
    chunks "$db"
    [ "$(units "summing rows")$(units "cutting chunks")" = 00 ] || fail "the first values: $(cat "$KILN_TMP/report")"
    same "$db" "$KILN_TMP/first.db"
); result

# values of all three blocks, so that the blocks are scattered before it is known which chunks are due: in memory, and on the disk
cp "$KILN_TMP/first.ply" "$KILN_TMP/s/scene.ply"
for row in 5 70000 139999; do edit_ply "$KILN_TMP/s/scene.ply" f_dc_1 $row 'v + 0.25'; done
for ram in 4G 192M; do
    test_step "values of all blocks, --ram $ram" && (
        cp "$KILN_TMP/first.db" "$db"
        upto "$KILN_TMP/s" "$db"
        chunks "$db" --ram $ram --threads 2
        [ "$(units "summing rows")" = 3 ] && [ "$(units "cutting chunks")" -le 3 ] ||
            fail "three values, --ram $ram: $(cat "$KILN_TMP/report")"
        kiln verify "$db" --digest >"$KILN_TMP/digest.$ram"
    ); result
done

test_case '--ram changes nothing' && (
    cmp "$KILN_TMP/digest.4G" "$KILN_TMP/digest.192M" || fail "--ram changed the bake"
); result

test_case 'hosts: the plan sums up, tasks cut what is due' && (
    db=$KILN_TMP/hosts.db
    cp "$KILN_TMP/first.db" "$db"
    upto "$KILN_TMP/s" "$db"
    must 0 "$KILN_BIN/kiln-chunk" "$db" --plan --tasks 2
    grep -q '[23] of [0-9]* units' "$KILN_TMP/err" || fail "the plan: $(cat "$KILN_TMP/err")"
    for i in 1 2; do must 0 "$KILN_BIN/kiln-chunk" "$db" --shard $i/2 --part "$KILN_TMP/parts"; done
    must 0 "$KILN_BIN/kiln-chunk" "$db" --gather "$KILN_TMP/parts"
    kiln verify "$db" --digest | cmp - "$KILN_TMP/digest.4G" || fail "hosts changed the bake"
); result
