#!/bin/bash
# time-limit: 900
# Promise 3 for kiln-gc: a disk that is full after N bytes, the n-th write, sync or step of SQLite that fails: it ends with its
# code, the manifest is whole, and the same command once more does the rest. Where vacuum has no room, dropping stands. About 8
# faults of a kind; FAULT_MOST=25 tests/run fault/gc takes 25, FAULT_ALL=1 all, the full sweep. SEED: others are left out.
. tests/fault/lib.sh
"${cc[@]}" -std=gnu11 -O1 -g -shared -fPIC -o "$KILN_TMP/fail_nth.so" tests/fault/fail_nth.c -ldl || fail "cc"
scene "$KILN_TMP/s" 8000 2 80x48
mkdir "$KILN_TMP/bake"
bake "$KILN_TMP/s" "$KILN_TMP/bake/x.db" --max 512
kiln prune "$KILN_TMP/bake/x.db" --min-opacity 0.3 >/dev/null || fail "prune"
for s in chunk tiles render export; do kiln $s "$KILN_TMP/bake/x.db" >/dev/null || fail "$s"; done
before=$KILN_TMP/bake/x.db dir=$KILN_TMP/work
digest "$before" >"$KILN_TMP/digest"
mkdir "$dir"
cp "$before" "$dir/x.db"
kiln gc "$dir/x.db" --vacuum >/dev/null || fail "gc"
small=$(stat -c %s "$dir/x.db")
[ "$small" -lt "$(stat -c %s "$before")" ] || fail "gc gave nothing back"

# faulty KIND N: calls: how many there were, hits: how many failed
faulty() {
    rm -rf "$dir" "$dir.count"; mkdir "$dir"; cp "$before" "$dir/x.db"
    KILN_TEST_FAIL=$1:$2:any:$dir.count LD_PRELOAD=$KILN_TMP/fail_nth.so timeout -k 1 $WITHIN "$KILN_BIN/kiln-gc" --quiet \
        "$dir/x.db" --vacuum \
        >/dev/null 2>"$dir.err"
    code=$?
    calls=$(counted "$dir.count" 1) hits=$(counted "$dir.count" 2)
    case $code in 0 | 5 | 74) ;; *) fail "$1 $2: exit $code: $(cat "$dir.err")" ;; esac
    [ "$hits" != 0 ] || [ $code = 0 ] || fail "$1 $2: exit $code without a fault"
    [ $code = 0 ] || [ "$(grep -c . "$dir.err")" = 1 ] || fail "$1 $2: $(cat "$dir.err")"
    kiln verify "$dir/x.db" >"$dir.said" 2>&1 || fail "$1 $2: verify: $(cat "$dir.said")"
    digest "$dir/x.db" | cmp -s - "$KILN_TMP/digest" || fail "$1 $2: other digests"
    kiln gc "$dir/x.db" --vacuum >"$dir.said" 2>&1 || fail "$1 $2: gc again: $(cat "$dir.said")"
    [ "$(stat -c %s "$dir/x.db")" = "$small" ] || fail "$1 $2: $(stat -c %s "$dir/x.db") bytes, not $small"
    kiln verify "$dir/x.db" >"$dir.said" 2>&1 || fail "$1 $2: verify at the end: $(cat "$dir.said")"
    digest "$dir/x.db" | cmp -s - "$KILN_TMP/digest" || fail "$1 $2: other digests at the end"
    [ "$(ls -A "$dir")" = x.db ] || fail "$1 $2: left $(ls -A "$dir")"
}

RANDOM=${SEED:-1} tried=0 most=${FAULT_MOST:-8}

test_case 'a disk that is full after N bytes' && (
    faulty space 0
    total=$calls full=0
    for part in 1 2 3 4 5 6 7 8 9 10 11; do # of 12
        faulty space $((total * part / 12))
        [ "$hits" != 0 ] || fail "the disk never was full"
        [ $code = 74 ] && full=$((full + 1))
        if [ -s "$dir.err" ]; then grep -q 'are free.*; make room' "$dir.err" || fail "no numbers: $(cat "$dir.err")"; fi
    done
    [ $full -ge 6 ] || fail "only $full of 11 full disks were told"
); result

for kind in write fsync step; do
    test_case "the n-th $kind fails" && (
        faulty $kind 0
        total=$calls n=0 step=1
        while n=$((n + step)) && [ $n -le "$total" ]; do
            faulty $kind $n
            tried=$((tried + 1))
            [ -n "${FAULT_ALL:-}" ] || [ "$total" -le "$most" ] || step=$((1 + RANDOM % (2 * total / most)))
        done
    echo "$tried faults of $kind, SEED=${SEED:-1}"
    ); result
done

test_case 'a file system in which the manifest grows full' && (
    [ "$(id -u)" = 0 ] && mkdir "$KILN_TMP/small" &&
        mount -t tmpfs -o size=$(($(stat -c %s "$before") / 1024 + 5000))k none "$KILN_TMP/small" 2>/dev/null ||
        skip 'no tmpfs can be mounted'
    trap 'umount -l "$KILN_TMP/small"' EXIT
    db=$KILN_TMP/small/x.db
    cp "$before" "$db"
    must 0 kiln gc "$db" --dry-run
    must 74 "$KILN_BIN/kiln-gc" "$db"
    grep -q "vacuum needs .* in '$KILN_TMP/small'.*, but .* are free; .*kiln-gc --vacuum returns it to the disk" "$KILN_TMP/err" ||
        fail "no room: $(cat "$KILN_TMP/err")"
    grep -q '^blobs  *[1-9]' "$KILN_TMP/out" || fail "it does not say what was dropped: $(cat "$KILN_TMP/out")"
    [ "$(stat -c %s "$db")" = "$(stat -c %s "$before")" ] || fail "the file has another size"
    kiln verify "$db" >/dev/null || fail "verify without room"
    digest "$db" | cmp -s - "$KILN_TMP/digest" || fail "other digests without room"
    must 74 kiln gc "$db" --vacuum
    must 0 kiln gc "$db" --no-vacuum
    mkdir "$KILN_TMP/elsewhere"
    need=$((2 * small / 1024 + 4096))
    mount -o remount,size=$(($(stat -c %s "$before") / 1024 + need))k "$KILN_TMP/small" || fail "remount"
    kiln gc "$db" --vacuum --scratch-dir "$KILN_TMP/elsewhere" >/dev/null || fail "vacuum with room again"
    [ "$(stat -c %s "$db")" = "$small" ] || fail "$(stat -c %s "$db") bytes, not $small"
    [ -z "$(ls -A "$KILN_TMP/elsewhere")" ] || fail "left: $(ls -A "$KILN_TMP/elsewhere")"
    digest "$db" | cmp -s - "$KILN_TMP/digest" || fail "other digests after vacuum"
    must 2 kiln gc "$db" --vacuum --scratch-dir "$KILN_TMP/nowhere"
); result
