#!/bin/bash
# Promise 2: one thread and many, with and without AVX, another order of stages of work: the same bits.
. tests/e2e/lib.sh
scene "$KILN_TMP/s" 8000 2 200x150
bake "$KILN_TMP/s" "$KILN_TMP/many.db" --max 1024
kiln_threads() { "$KILN_BIN/kiln-$1" --quiet --threads 1 "${@:2}" >/dev/null || fail "$1 with one thread"; }

test_case 'one thread and many' && (
    db=$KILN_TMP/one.db
    kiln_threads import "$KILN_TMP/s" "$db"
    for s in knn prune "chunk --max 1024" tiles render "export -w"; do set -- $s; kiln_threads "$1" "$db" "${@:2}"; done
    same "$KILN_TMP/many.db" "$db"
); result

test_case 'without AVX' && (
    export KILN_ISA=baseline
    bake "$KILN_TMP/s" "$KILN_TMP/baseline.db" --max 1024
    same "$KILN_TMP/many.db" "$KILN_TMP/baseline.db"
); result

test_case 'blocks that several workers import' && (
    unset KILN_ISA
    scene "$KILN_TMP/large" 300000 1 64x64
    kiln_threads import "$KILN_TMP/large" "$KILN_TMP/large_one.db"
    kiln import "$KILN_TMP/large" "$KILN_TMP/large_many.db" --threads 6 >/dev/null || fail "import with six threads"
    same "$KILN_TMP/large_one.db" "$KILN_TMP/large_many.db"
    root() { python3 -c 'import sqlite3, sys
print(sqlite3.connect(sys.argv[1]).execute("SELECT root_x, root_y, root_z, root_half FROM scene").fetchall())' "$1" || fail "root of $1"; }
    [ "$(root "$KILN_TMP/large_one.db")" = "$(root "$KILN_TMP/large_many.db")" ] || fail "another root cube"
); result
