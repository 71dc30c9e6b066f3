#!/bin/bash
# A process that may open few files: chunk on many threads goes on with fewer connections, and gives the same chunks.
. tests/e2e/lib.sh
cd "$KILN_TMP" || exit 1
kiln generate scene s --gaussians 3000 --cameras 1 --size 32x24 --quiet || fail "scene"
kiln import s m.db --quiet && kiln knn m.db --quiet && kiln prune m.db --quiet && cp m.db few.db && kiln chunk m.db --quiet ||
    fail "bake"

test_case 'chunk on many threads goes on with fewer connections, and gives the same chunks' && (
    (ulimit -n 32 && exec "$KILN_BIN/kiln-chunk" few.db --threads 16 --verbose) >out 2>&1 || fail "32 files: $(tail -n 1 out)"
    grep -q ' connections instead of 16: ' out || fail "nothing is said of it: $(cat out)"
    same m.db few.db
); result
