#!/bin/bash
# Two parents on one manifest: the second says who holds it and ends with 75; readers are not blocked; a holder that is killed
# holds nothing.
. tests/e2e/lib.sh
scene "$KILN_TMP/s" 60000 6 800x600
db=$KILN_TMP/x.db
kiln import "$KILN_TMP/s" "$db" >/dev/null || fail "import"
kiln knn "$db" >/dev/null && kiln prune "$db" >/dev/null && kiln chunk "$db" >/dev/null || fail "bake"

test_case 'the second parent says who holds the manifest, and readers are not blocked' && (
    "$KILN_BIN/kiln-tiles" --quiet "$db" >/dev/null 2>&1 & first=$!
    # Stopped while it waits for its workers: in the instant before, it may hold SQLite's own lock, which is for instants only.
    for _ in $(seq 6000); do
        grep -q tiles "$db.lock" 2>/dev/null && [ -n "$(cat /proc/$first/task/$first/children)" ] && break
        sleep 0.01
    done
    kill -STOP $first # it holds the lock for as long as this looks
    "$KILN_BIN/kiln-render" "$db" >"$KILN_TMP/out" 2>"$KILN_TMP/err" && got=0 || got=$?
    [ $got = 75 ] || fail "the second parent ended with $got"
    for word in "pid $first" "host $(hostname 2>/dev/null || cat /etc/hostname)" 'stage tiles' "start $(date -u +%Y-)"; do
        grep -q "$word" "$KILN_TMP/err" || fail "it does not say who holds it, $word: $(cat "$KILN_TMP/err")"
    done
    kiln info "$db" >/dev/null || fail "a reader was blocked"
    kill -CONT $first
    wait $first || fail "the first parent suffered"
); result

test_case 'a holder that is killed holds nothing' && (
    "$KILN_BIN/kiln-render" --quiet "$db" >/dev/null 2>&1 & first=$!
    for _ in $(seq 6000); do grep -q render "$db.lock" 2>/dev/null && break; sleep 0.01; done
    kill -KILL $first
    wait $first 2>/dev/null || :
    [ -e "$db.lock" ] || fail "the holder ended before it was killed"
    kiln render "$db" >/dev/null || fail "a dead process holds the manifest"
); result
