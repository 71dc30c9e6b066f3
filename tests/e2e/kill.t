#!/bin/bash
# Promise 3: kill -9 of parent, workers or both at random moments, the same command again: the digests of a bake in one go, and no
# committed unit is computed twice.
. tests/e2e/lib.sh
# A few kills; `KILLS=200 tests/run e2e/kill` is the full sweep. SCENE=dir, SEED=n: another scene, other moments.
[ -n "${SCENE:-}" ] || { SCENE=$KILN_TMP/s; scene "$SCENE" 6000 4 160x100; }
mkdir "$KILN_TMP/straight" "$KILN_TMP/killed"
bake "$SCENE" "$KILN_TMP/straight/x.db" --max 256

test_case 'kill -9 at random moments, and the same command again' && (
    python3 tests/e2e/kill.py "$KILN_BIN" "$SCENE" "$KILN_TMP/straight/x.db" "$KILN_TMP/killed" "${KILLS:-12}" "${SEED:-7}" --max \
        256 ||
        fail "see above"
); result
