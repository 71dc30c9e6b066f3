#!/usr/bin/env bash
# The spacing measured in ranges is that of the whole layer, bit for bit: for Gaussians and points, many neighbours, few rows, rows
# far from everything, with little memory, and when it was killed half-way.
# starts first
. tests/e2e/lib.sh
cd "$KILN_TMP" || exit 1
# knn DB options: what it says as JSON in `out`
knn() {
    local db=$1; shift
    "$KILN_BIN/kiln-knn" "$db" --quiet --json "$@" >out 2>err || { cat err >&2; fail "knn of $db $*"; }
}
get() { python3 -c 'import json, sys; print(eval(sys.argv[1], {}, json.load(open("out"))))' "$1"; }
# both SCENE OPTIONS RANGE: whole and in ranges, with the same options of knn; the numbers that it says are the same too
both() {
    local scene=$1 options=$2 range=$3 said
    rm -f ./*.db
    kiln import "$scene" whole.db >/dev/null || fail "import $scene"
    cp whole.db ranges.db
    # shellcheck disable=SC2086 # options are words
    knn whole.db $options
    [ "$(get '"ranges" in phases')" = False ] || fail "the whole of $scene was measured in ranges"
    said=$(get spacing)
    # shellcheck disable=SC2086
    knn ranges.db $options --range "$range"
    [ "$(get 'phases["ranges"]')" -gt 1 ] || fail "$scene was measured in one range of $range"
    [ "$(get spacing)" = "$said" ] || fail "$scene: $(get spacing) instead of $said"
    same whole.db ranges.db
    [ -z "$(find . -name '*.scratch')" ] || fail "scratch is left"
    must 0 kiln knn ranges.db --force --range "$range"
}

scene s 200000 1 64x64

test_case 'every range is needed: no option leaves units to other runs' && (
    must 2 kiln knn none.db --units 0
    grep -q 'has no --units' err || fail "--units: $(cat err)"
    must 2 kiln knn none.db --shard 1/2
    grep -q -e "--shard needs --part" err || fail "--shard: $(cat err)"
); result

test_case 'Gaussians in ranges' && (
    both s '' 30000
); result

kiln generate points p --gaussians 100000 >/dev/null || fail "generate points"

test_case 'points in ranges' && (
    both p '' 10000
); result

test_case 'points in ranges, with 32 neighbours' && (
    both p '--neighbors 32' 5000
); result

kiln generate points few --gaussians 3 >/dev/null || fail "generate points"

test_case 'three points in ranges' && (
    both few '' 1
    both few '--neighbors 2' 2
); result

# two clouds far from each other, a plane of equal distances, rows far away
py odd

test_case 'clouds far apart, equal distances and rows far away' && (
    both odd '' 500
); result

test_case 'clouds far apart, with 7 neighbours' && (
    both odd '--neighbors 7' 100
); result

# little memory leads to ranges by itself; a kill costs only ranges in hand
rm -f ./*.db
kiln generate points large --gaussians 1500000 >/dev/null && kiln import large base.db >/dev/null || fail "large"
cp base.db whole.db; cp base.db little.db; cp base.db killed.db
knn whole.db
knn little.db --ram 104M
ranges=$(get 'phases["ranges"]')

test_case 'little memory leads to ranges by itself' && (
    same whole.db little.db
); result

stored() { sqlite3 "file:$1?mode=ro" "select count(*) from unit where name like 'range %'" 2>/dev/null || echo 0; }

test_case 'a kill costs only ranges in hand' && (
    set -m; "$KILN_BIN/kiln-knn" killed.db --quiet --ram 104M >/dev/null 2>&1 & pid=$!; set +m
    for ((i = 0; i < 4000; i++)); do
        kept=$(stored killed.db)
        [ "$kept" -gt 0 ] && break
        kill -0 "$pid" 2>/dev/null || break
        sleep 0.01
    done
    kill -9 -- "-$pid" 2>/dev/null || :
    wait "$pid" 2>/dev/null || :
    kept=$(stored killed.db)
    knn killed.db --ram 104M
    same whole.db killed.db
    [ "$(stored killed.db)" = "$ranges" ] || fail "$(stored killed.db) ranges are stored, not $ranges"
    echo "$ranges ranges with --ram 104M; $kept were stored when it was killed"
    [ -z "$(find . -name '*.scratch')" ] || fail "scratch is left"
); result

# other memory than before the kill: what is stored is gone on with, and the partition too; so it is where the whole has room now
go_on() { # DB OPTIONS: with the ranges and the scratch that a kill left
    local db=$1 scratch; shift
    cp half.db "$db"
    cp -r half.db.scratch "$db.scratch"
    scratch=$(stat -c %i "$db.scratch"/knn-*/means)
    ! KILN_FAULT='unit=range*:kill' "$KILN_BIN/kiln-knn" "$db" --quiet "$@" >/dev/null 2>&1 || fail "$db: no range was left"
    [ "$(stat -c %i "$db.scratch"/knn-*/means)" = "$scratch" ] || fail "$db: the partition was made again"
    knn "$db" "$@"
    [ "$(get 'phases["ranges"]')" = "$ranges" ] || fail "$db: $(get phases), not the $ranges ranges of before"
    [ "$(stored "$db")" = "$ranges" ] || fail "$db: $(stored "$db") ranges are stored, not $ranges"
    same whole.db "$db"
}
cp base.db half.db
! KILN_FAULT='unit=range 5 *:kill' "$KILN_BIN/kiln-knn" half.db --quiet --ram 104M >/dev/null 2>&1 || fail "range 5 was made"
[ "$(stored half.db)" -gt 0 ] || fail "nothing was stored before the kill"

test_case 'after a kill it goes on with more memory' && (
    go_on more.db --ram 120M
); result

test_case 'after a kill it goes on with the least memory' && (
    go_on least.db --ram 72M
); result

test_case 'after a kill it goes on where the whole has room now' && (
    go_on all.db
); result

rm -r half.db.scratch

test_case 'no scratch is left' && (
    [ -z "$(find . -name '*.scratch')" ] || fail "scratch is left"
); result
