#!/bin/bash
# starts first
# Batches that are large enough to be written once, in their place (schema/direct.c): writes, syncs and steps of SQLite fail, in the
# parent. The scenes of the other tests are too small for that.
GAUSSIANS=24000
export MAX=16384
. tests/fault/lib.sh
prepare
for s in import chunk; do
    bytes=$(stat -c %s "$KILN_TMP/after.$s/x.db")
    [ "$bytes" -gt 3000000 ] || fail "the bake after $s has $bytes bytes: the batches are too small to be written once"
done
ALL_STAGES="import chunk"
loops 4 write fsync step
