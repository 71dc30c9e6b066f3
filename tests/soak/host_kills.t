#!/bin/bash
# Promise 3 over hosts: kill -9 of plans, tasks and gathers at random moments, the same commands again: the digests of a bake in one
# go, no part half-written, nothing left behind. HOST_KILLS=n SEED=n SCENE=dir: more kills, other moments, another scene.
# time-limit: 7200
. tests/e2e/lib.sh
# Stages take blocks of 65,536 rows.
[ -n "${SCENE:-}" ] || { SCENE=$KILN_TMP/s; scene "$SCENE" 150000 4 160x100; }
mkdir "$KILN_TMP/straight" "$KILN_TMP/killed"
bake "$SCENE" "$KILN_TMP/straight/x.db" --max 16384
python3 tests/soak/host_kills.py "$KILN_BIN" "$SCENE" "$KILN_TMP/straight/x.db" "$KILN_TMP/killed" "${HOST_KILLS:-200}" "${SEED:-7}" --max 16384 ||
    fail "see above"
