#!/bin/bash
# Containment: units that fail on every device are given up with their name, what can be made without them is made (exit 7), later
# stages refuse it unless they are told otherwise, and a run without the fault gives the digests of a clean bake.
. tests/e2e/lib.sh
scene "$KILN_TMP/s" 12000 3 160x120
clean=$KILN_TMP/clean.db db=$KILN_TMP/m/manifest.db
bake "$KILN_TMP/s" "$clean" --max 1024
state() { "$KILN_BIN/kiln-info" "$db" | awk -v s="$1" '$1 == s { print $2; exit }'; }
is() { [ "$(state "$1")" = "$2" ] || fail "$1 is $(state "$1"), not $2"; }
faulty() { local fault=$1; shift; KILN_FAULT=$fault "$@"; }
done_units() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["units"]["done"])' "$KILN_TMP/out"; }

for s in import knn prune; do
    if [ $s = import ]; then kiln import "$KILN_TMP/s" "$db"; else kiln $s "$db"; fi >/dev/null || fail "$s"
done

test_step 'a chunk that fails on every worker is given up with its name' && (
    must 7 faulty 'unit=3:kill' "$KILN_BIN/kiln-chunk" "$db" --max 1024 --workers 2
    grep -q "^kiln-chunk: warning: chunk: 'chunk /[^']*' is quarantined after 3 attempts, the last on worker . of the CPU: .*signal 9" "$KILN_TMP/err" ||
        fail "the quarantined chunk is not named: $(cat "$KILN_TMP/err")"
    [ "$(grep -c 'is quarantined' "$KILN_TMP/err")" = 1 ] || fail "one line for one unit"
    is chunk partial
    must 0 "$KILN_BIN/kiln-info" "$db"
    grep -q "^chunk: 'chunk /.* failed 3 times" "$KILN_TMP/out" || fail "kiln-info does not show the quarantine"
    must 0 "$KILN_BIN/kiln-verify" "$db"
); result

test_step 'later stages refuse a partial one unless they are told otherwise' && (
    must 4 kiln tiles "$db"
    grep -q "^kiln-tiles: chunk finished partially for .*; run kiln-chunk .* first, or give --allow-partial$" "$KILN_TMP/err" ||
        fail "$(cat "$KILN_TMP/err")"
    must 4 kiln export "$db"
    must 0 "$KILN_BIN/kiln-tiles" "$db" --allow-partial
    is tiles partial
    grep -q "warning: chunk finished partially, so this output is partial too" "$KILN_TMP/err" || fail "$(cat "$KILN_TMP/err")"
    must 0 kiln tiles "$db" --allow-partial # again: it may be whole by now
    is tiles partial
); result

test_step 'a camera that fails: the other pictures are drawn' && (
    must 7 faulty 'unit=*cam1*:abort' "$KILN_BIN/kiln-render" "$db" --allow-partial
    grep -q "1 of [0-9]* units are quarantined; run the same command to try them again, or later stages with --allow-partial$" \
        "$KILN_TMP/err" ||
        fail "$(cat "$KILN_TMP/err")"
    is render partial
    [ "$(digest "$db" | grep -c ^image)" = 2 ] || fail "the other two pictures: $(digest "$db")"
); result

test_case 'without the fault just what is missing is made' && (
    must 0 kiln chunk "$db" --json
    # and the order of rows, in scratch
    [ "$(done_units)" -le 2 ] || fail "chunk made $(done_units) units, not the one that was missing"
    is chunk fresh
    for s in tiles render; do is $s stale; done
    for s in tiles render export; do kiln $s "$db" >/dev/null || fail "$s after the fault"; done
    same "$clean" "$db"
    "$KILN_BIN/kiln-info" "$db" | grep -qx 'quarantine' && fail "the quarantine is not empty"
    for s in chunk tiles render; do "$KILN_BIN/kiln-$s" "$db" 2>&1 | grep -q 'nothing to do' || fail "$s did something"; done
); result

test_case 'shards: each its part, in any order and twice' && (
    rm -rf "$KILN_TMP/m"
    for s in import knn prune; do
        if [ $s = import ]; then kiln import "$KILN_TMP/s" "$db"; else kiln $s "$db"; fi >/dev/null || fail "$s"
    done
    for i in 3 1 2 1; do must 0 kiln chunk "$db" --max 1024 --shard $i/3; done
    is chunk missing
    must 0 kiln chunk "$db" --max 1024 --json
    [ "$(done_units)" = 0 ] || fail "after all shards $(done_units) units were left"
    for s in tiles render export; do kiln $s "$db" >/dev/null || fail "$s after shards"; done
    same "$clean" "$db"
); result

test_case 'a partial layer stays one on its way' && (
    rm -rf "$KILN_TMP/m"
    kiln import "$KILN_TMP/s" "$db" >/dev/null && kiln knn "$db" >/dev/null || fail "import, knn"
    must 7 faulty 'unit=block *:abort' "$KILN_BIN/kiln-prune" "$db"
    must 0 kiln chunk "$db" --max 1024 --allow-partial
    is chunk partial
    for s in tiles render export; do
        must 4 kiln $s "$db"
        grep -q "^kiln-$s: chunk finished partially" "$KILN_TMP/err" || fail "$(cat "$KILN_TMP/err")"
    done
    must 0 kiln tiles "$db" --allow-partial
    for s in tiles chunk; do is $s partial; done
    for s in prune chunk tiles render export; do must 0 kiln $s "$db"; done
    for s in prune chunk tiles render; do is $s fresh; done
    same "$clean" "$db"
); result

test_case 'rows around those that are missing are written in source order' && (
    py rows "$KILN_TMP/rows.ply" || fail "rows.ply"
    rm -rf "$KILN_TMP/m"
    must 7 faulty 'unit=block 1:abort' "$KILN_BIN/kiln-import" "$KILN_TMP/rows.ply" "$db"
    must 0 kiln export "$db" --layer source --allow-partial -o "$KILN_TMP/o.ply"
    py two_blocks "$KILN_TMP" || fail "the rows of two blocks of three"
); result

test_case 'make stops at the stage that finished partially' && (
    printf 'all:\nO := %s\ninclude pipelines/pipeline.mk\n' "$(dirname "$KILN_BIN")" >"$KILN_TMP/mk"
    pipeline() {
        make --no-print-directory -f "$KILN_TMP/mk" pipeline SCENE="$KILN_TMP/s" OUT="$KILN_TMP/made" MAX=1024 DEVICE=cpu
    }
    ! KILN_FAULT='unit=chunk*:exit' pipeline >"$KILN_TMP/out" 2>&1 || fail "make went on behind a partial stage"
    grep -q 'units are quarantined; run the same command' "$KILN_TMP/out" ||
        fail "make does not show the sentence: $(cat "$KILN_TMP/out")"
    ! grep -q '^baked:\|kiln-tiles' "$KILN_TMP/out" || fail "make went on behind chunk"
    pipeline >"$KILN_TMP/out" 2>&1 || fail "make after the fault: $(cat "$KILN_TMP/out")"
); result
