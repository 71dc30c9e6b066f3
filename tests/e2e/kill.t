#!/bin/bash
# time-limit: 240
# Promise 3: kill -9 of parent and worker at random moments, the same command again: the digests of a bake in one go.
. tests/e2e/lib.sh
# SCENE=dir KILLS=n SEED=n: another scene, more kills, other moments.
[ -n "${SCENE:-}" ] || { SCENE=$KILN_TMP/s; scene "$SCENE" 20000 3 320x200; }
begun=$(date +%s%N)
bake "$SCENE" "$KILN_TMP/straight.db" --max 2048
bake_ms=$((($(date +%s%N) - begun) / 1000000))

db=$KILN_TMP/killed.db
all() { # in its own process group, so that one kill takes parent and workers
    kiln import "$SCENE" "$db" && kiln knn "$db" && kiln prune "$db" && kiln chunk "$db" --max 2048 && kiln tiles "$db" &&
        kiln render "$db" && kiln export "$db"
}
RANDOM=${SEED:-7}
kills=0 bakes=0
while [ $kills -lt "${KILLS:-20}" ]; do
    set -m; all >"$KILN_TMP/log" 2>&1 & pid=$!; set +m
    ms=$((RANDOM * bake_ms / 40000)) # of 0 .. 32767: up to four fifths of a bake
    sleep "$((ms / 1000)).$(printf %03d $((ms % 1000)))"
    hit=0
    kill -9 -- "-$pid" 2>/dev/null && hit=1 kills=$((kills + 1))
    if wait $pid 2>/dev/null; then # it came through: right, and once more from nothing
        same "$KILN_TMP/straight.db" "$db"
        rm -f "$db"*
        bakes=$((bakes + 1))
        [ $bakes -lt 60 ] || break
    elif [ $hit = 0 ]; then
        fail "a bake failed by itself: $(cat "$KILN_TMP/log")"
    elif [ -f "$db" ]; then
        kiln verify "$db" >/dev/null || fail "what is visible after a kill is not whole"
    fi
done
[ $kills -ge 10 ] || fail "only $kills kills hit"
all >"$KILN_TMP/log" 2>&1 || fail "the last run: $(cat "$KILN_TMP/log")"
same "$KILN_TMP/straight.db" "$db"
echo "$kills kills, $((bakes + 1)) bakes came through"
