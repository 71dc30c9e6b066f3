#!/bin/bash
# time-limit: 900
# kiln-gc: drops what an earlier output left and nothing else. Digests stay, no stage has anything to do, a changed option redoes
# just the units that it redoes without it, what is not complete yet stays; kills in the midst of it lose nothing.
# starts first
. tests/e2e/lib.sh
B=$KILN_BIN
scene "$KILN_TMP/s" 6000 3 160x120
mkdir "$KILN_TMP/a"
db=$KILN_TMP/a/x.db
bake "$KILN_TMP/s" "$db" --max 256
first=$(stat -c %s "$db")
said() { "$B/kiln-gc" "$@" 2>&1 || fail "gc $*: $?"; }
nothing_to_do() { # DB WHAT
    local s
    for s in $STAGES; do
        "$B/kiln-$s" "$1" >"$KILN_TMP/out" 2>&1 || fail "$s $2"
        grep -q 'nothing to do' "$KILN_TMP/out" || fail "$s $2: $(cat "$KILN_TMP/out")"
    done
}

test_case 'a first bake has nothing to drop' && (
    [[ $(said "$db") == *"nothing to do: all data are needed"* ]] ||
        fail "a first bake has something to drop: $(said "$db")"
); result

# ---- one changed option, all of it made again ----
rest() { local s; for s in chunk tiles render export; do kiln $s "$1" >/dev/null || fail "$s of $1"; done; }
kiln prune "$db" --min-opacity 0.2 >/dev/null || fail "prune"
rest "$db"
grown=$(stat -c %s "$db")
digest "$db" >"$KILN_TMP/digest"
cp -r "$KILN_TMP/a" "$KILN_TMP/kept" # never collected

test_case 'a dry run counts and changes nothing' && (
    check=$(cksum "$db")
    said "$db" --dry-run >"$KILN_TMP/dry"
    grep -qE '^layers +2 +4 ' "$KILN_TMP/dry" || fail "dry run: $(cat "$KILN_TMP/dry")"
    [ "$check" = "$(cksum "$db")" ] || fail "a dry run changed the manifest"
); result

kiln gc "$db" --json >"$KILN_TMP/json" || fail "gc"
small=$(stat -c %s "$db")

test_case 'the file is smaller, and the report has what went and what stayed' && (
    [ "$small" -lt "$grown" ] || fail "the file has $small bytes after $grown"
    py report "$KILN_TMP/json" "$grown" "$small" "$db" || fail "the report"
); result

test_case 'digests stay, and nothing is left beside the manifest' && (
    digest "$db" | cmp -s - "$KILN_TMP/digest" || fail "other digests"
    [ -z "$(ls "$db"-* "$db.lock" 2>/dev/null)" ] || fail "left: $(ls "$db"-*)"
    kiln verify "$db" >/dev/null || fail "verify"
); result

# records of runs: the last of each stage stays, which is all that kiln-info and kiln-report tell of, also when there is no more to
# drop
runs() { python3 -c 'import sqlite3, sys
print(sqlite3.connect(sys.argv[1]).execute("SELECT count(*), count(DISTINCT stage) FROM run").fetchone())' "$1"; }
tells() { "$B/kiln-info" "$1" --json && kiln report "$1" -o "$KILN_TMP/r.html" && sed 's/[0-9.]* [KMG]iB//g' "$KILN_TMP/r.html"; }

test_case 'of the records of runs the last of each stage stays' && (
    [ "$(runs "$db")" = '(7, 7)' ] || fail "runs after gc: $(runs "$db")"
    cp -r "$KILN_TMP/a" "$KILN_TMP/often"; often=$KILN_TMP/often/x.db
    for max in 200 256; do kiln chunk "$often" --max $max >/dev/null && rest "$often"; done
    said "$often" --keep-runs >/dev/null
    [ "$(runs "$often")" = '(15, 7)' ] || fail "--keep-runs left $(runs "$often")"
    said "$often" --dry-run >"$KILN_TMP/dry"
    grep -qE '^runs +8 +7 +chunk 2, tiles 2, render 2, export 2$' "$KILN_TMP/dry" ||
        fail "a dry run does not count runs: $(cat "$KILN_TMP/dry")"
    kiln gc "$often" --dry-run --json | py runs_of_report || fail "runs in the report"
    [ "$(runs "$often")" = '(15, 7)' ] || fail "a dry run dropped runs"
    tells "$often" >"$KILN_TMP/told"
    said "$often" >/dev/null
    [ "$(runs "$often")" = '(7, 7)' ] || fail "gc left the runs $(runs "$often")"
    tells "$often" | diff "$KILN_TMP/told" - >"$KILN_TMP/less" ||
        fail "kiln-info or kiln-report tells less without the old runs: $(cut -c 1-300 "$KILN_TMP/less")"
    digest "$often" | cmp -s - "$KILN_TMP/digest" || fail "other digests"
    kiln verify "$often" >/dev/null || fail "verify without the old runs"
    nothing_to_do "$often" "without the old runs"
    rm -rf "$KILN_TMP/often"
); result

test_case 'after gc there is nothing to do' && (
    [[ $(said "$db") == *"nothing to do"* ]] || fail "a second time there is something to drop: $(said "$db")"
    nothing_to_do "$db" "after gc"
); result

# ---- a changed option redoes the same units with and without ----
# units_of DB STAGE [OPTION...]: the stage with these, and what follows it; how many units each computed and found
units_of() {
    local db=$1 from=$2 s on=; shift 2
    for s in $STAGES; do
        if [ $s = "$from" ]; then on=1; else [ -n "$on" ] || continue; set --; fi
        kiln $s "$db" "$@" --json >"$KILN_TMP/json" || fail "$s of $db"
        python3 -c 'import json, sys
u = json.load(open(sys.argv[1]))["units"]
print(sys.argv[2], u["done"], u["cached"])' "$KILN_TMP/json" $s
    done
}
while read -r stage options; do
    test_case "$stage $options: the same units as without gc" && (
        for which in a kept; do rm -rf "$KILN_TMP/try.$which"; cp -r "$KILN_TMP/$which" "$KILN_TMP/try.$which"; done
        # shellcheck disable=SC2086 # options are words
        for which in a kept; do units_of "$KILN_TMP/try.$which/x.db" $stage $options >"$KILN_TMP/units.$which"; done
        cmp -s "$KILN_TMP/units.a" "$KILN_TMP/units.kept" ||
            fail "$stage $options: $(diff "$KILN_TMP/units.a" "$KILN_TMP/units.kept")"
        [ "$(awk '{n += $3} END {print (n > 0)}' "$KILN_TMP/units.a")" = 1 ] || [ "$stage" != prune ] ||
            fail "$stage $options used nothing again"
        same "$KILN_TMP/try.a/x.db" "$KILN_TMP/try.kept/x.db"
    ); result
done <<'END'
knn --neighbors 4
prune --drop-row 17
prune --min-opacity 0.25
chunk --max 200
tiles --near 0.3
tiles --tables cam0
render --background white
render --near 0.3
export --format chunks
END
rm -rf "$KILN_TMP"/try.*

rm -rf "$KILN_TMP/part"; cp -r "$KILN_TMP/a" "$KILN_TMP/part"; part=$KILN_TMP/part/x.db
done_of() { python3 -c 'import json, sys; print(json.load(sys.stdin)["units"]["done"])'; }

test_case 'units of a shard that waits for the others stay' && (
    n=$(kiln chunk "$part" --max 200 --shard 1/2 --json | done_of)
    [ "$n" -gt 1 ] || fail "the shard computed $n units"
    kiln gc "$part" --vacuum >/dev/null || fail "gc beside a shard"
    n=$(kiln chunk "$part" --max 200 --shard 1/2 --json | done_of)
    [ "$n" = 0 ] || fail "gc took $n units of a shard that waits for the others"
); result

test_case 'a partial bake stays, and its quarantine' && (
    KILN_FAULT='unit=chunk /*2:exit' must 7 "$B/kiln-chunk" --quiet "$part" --max 200
    digest "$part" >"$KILN_TMP/digest.part"
    cp -r "$KILN_TMP/part" "$KILN_TMP/whole"
    kiln gc "$part" >/dev/null || fail "gc of a partial bake"
    digest "$part" | cmp -s - "$KILN_TMP/digest.part" || fail "gc changed a partial bake"
    kiln verify "$part" >/dev/null || fail "verify of a partial bake"
    [ "$("$B/kiln-info" "$part" --json | python3 -c 'import json, sys; print(len(json.load(sys.stdin)["quarantine"]))')" -gt 0 ] ||
        fail "nothing is in quarantine after gc"
    n=$(kiln chunk "$part" --max 200 --json | done_of)
    [ "$n" = "$(kiln chunk "$KILN_TMP/whole/x.db" --max 200 --json | done_of)" ] ||
        fail "$n units were computed to complete a partial stage"
    same "$part" "$KILN_TMP/whole/x.db"
); result

rm -rf "$KILN_TMP/whole"
rm -rf "$KILN_TMP/part"

cp -r "$KILN_TMP/kept" "$KILN_TMP/old"; old=$KILN_TMP/old/x.db

test_step 'a bake of a version that did not remember units' && (
    py forget_units "$old" || fail "an old bake"
    kiln gc "$old" >/dev/null || fail "gc of an old bake"
    [ "$(stat -c %s "$old")" -lt "$grown" ] || fail "nothing of an old bake was dropped"
    digest "$old" | cmp -s - "$KILN_TMP/digest" || fail "gc changed an old bake"
    kiln verify "$old" >/dev/null || fail "verify of an old bake"
    STAGES=${STAGES% export} nothing_to_do "$old" "of an old bake" # a copied export is another file
    for which in old kept; do units_of "$KILN_TMP/$which/x.db" prune --drop-row 17 >"$KILN_TMP/units.$which"; done
    cmp -s "$KILN_TMP/units.old" "$KILN_TMP/units.kept" || fail "an old bake: $(diff "$KILN_TMP/units.old" "$KILN_TMP/units.kept")"
); result

test_case 'a bake whose stage is stale' && (
    kiln prune "$old" --drop-row 18 >/dev/null || fail "prune" # chunk and the rest are stale now
    kiln gc "$old" >/dev/null || fail "gc of a stale bake"
    kiln verify "$old" >/dev/null || fail "verify of a stale bake"
    rest "$old"
    cp -r "$KILN_TMP/a" "$KILN_TMP/new"
    kiln prune "$KILN_TMP/new/x.db" --drop-row 18 >/dev/null && rest "$KILN_TMP/new/x.db" || fail "bake"
    same "$old" "$KILN_TMP/new/x.db"
); result

rm -rf "$KILN_TMP/old" "$KILN_TMP/new" "$KILN_TMP/kept"

cp -r "$KILN_TMP/a" "$KILN_TMP/k"; k=$KILN_TMP/k/x.db
kiln prune "$k" --min-opacity 0.3 >/dev/null && rest "$k" || fail "bake"
digest "$k" >"$KILN_TMP/digest"
cp "$k" "$KILN_TMP/before.db"

test_case 'a reader of the old state is neither in the way nor disturbed' && (
    py beside_reader "$B/kiln-gc" "$k" || fail "beside a reader"
    digest "$k" | cmp -s - "$KILN_TMP/digest" || fail "other digests beside a reader"
); result

test_case 'whoever holds the manifest is named' && (
    python3 "$PY_FILE" hold "$k.lock" & holder=$!
    for _ in $(seq 500); do grep -q test "$k.lock" 2>/dev/null && break; sleep 0.01; done
    must 75 "$B/kiln-gc" "$k"
    grep -q "pid $holder, host here, stage test" "$KILN_TMP/err" || fail "it does not say who holds it: $(cat "$KILN_TMP/err")"
    must 0 "$B/kiln-gc" "$k" --dry-run # which waits for nobody
    kill $holder; wait $holder 2>/dev/null || :
); result

test_case 'kills in the midst of gc lose nothing' && (
    # KILLS=n SEED=n: more kills, other moments
    RANDOM=${SEED:-3} killed=0 n=0
    cp "$KILN_TMP/before.db" "$k"
    began=$(date +%s%N)
    kiln gc "$k" >/dev/null || fail "gc"
    takes=$((($(date +%s%N) - began) / 1000))
    while [ $killed -lt "${KILLS:-6}" ]; do
        n=$((n + 1)); [ $n -le 400 ] || fail "only $killed kills came in time"
        rm -f "$k"*; cp "$KILN_TMP/before.db" "$k"
        "$B/kiln-gc" --quiet "$k" >/dev/null 2>&1 & pid=$!
        us=$(((RANDOM * 32768 + RANDOM) % takes))
        sleep "$(printf '%d.%06d' $((us / 1000000)) $((us % 1000000)))"
        kill -KILL $pid 2>/dev/null || :
        wait $pid 2>/dev/null && continue # it was faster
        killed=$((killed + 1))
        kiln verify "$k" >/dev/null || fail "verify after a kill after $us us"
        digest "$k" | cmp -s - "$KILN_TMP/digest" || fail "other digests after a kill after $us us"
        kiln gc "$k" >/dev/null || fail "gc after a kill"
        [ "$(stat -c %s "$k")" -le "$small" ] || [ "$(stat -c %s "$k")" -lt "$(stat -c %s "$KILN_TMP/before.db")" ] ||
            fail "no space was given back after a kill"
        kiln verify "$k" >/dev/null || fail "verify after gc after a kill"
        [[ $(said "$k") == *"nothing to do"* ]] || fail "something is left after a kill and gc: $(said "$k")"
    done
    nothing_to_do "$k" "after kills"
    [ -z "$(ls -A "$KILN_TMP/k" | grep -vxE 'x.db|renders|export')" ] || fail "left: $(ls -A "$KILN_TMP/k")"
    echo "$first bytes of a bake, $grown after a changed option, $small after gc; $killed kills"
); result
