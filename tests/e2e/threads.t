#!/bin/bash
# Promise 2: one thread and many, with and without AVX, another order of stages of work: the same bits.
. tests/e2e/lib.sh
scene "$KILN_TMP/s" 8000 2 200x150
bake "$KILN_TMP/s" "$KILN_TMP/many.db" --max 1024
kiln_threads() { "$KILN_BIN/kiln-$1" --quiet --threads 1 "${@:2}" >/dev/null || fail "$1 with one thread"; }
db=$KILN_TMP/one.db
kiln_threads import "$KILN_TMP/s" "$db"
for s in knn prune "chunk --max 1024" tiles render export; do set -- $s; kiln_threads "$1" "$db" "${@:2}"; done
same "$KILN_TMP/many.db" "$db"
export KILN_ISA=baseline
bake "$KILN_TMP/s" "$KILN_TMP/baseline.db" --max 1024
same "$KILN_TMP/many.db" "$KILN_TMP/baseline.db"
