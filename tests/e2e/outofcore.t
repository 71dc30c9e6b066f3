#!/usr/bin/env bash
# A layer larger than --ram is cut into the same chunks, by way of the disk; a run that was killed there goes on; nothing is left.
. tests/e2e/lib.sh
cd "$KILN_TMP" || exit 1
scene s 300000 1 64x64
kiln import s base.db >/dev/null && kiln knn base.db >/dev/null || fail "bake"
cp base.db memory.db
# chunk DB options: said is what it says, blocks how many groups of blocks it went through
chunk() {
    local db=$1; shift
    "$KILN_BIN/kiln-chunk" "$db" --layer source --max 20000 --verbose "$@" >said 2>&1 || { cat said >&2; fail "chunk of $db $*"; }
    blocks=$(grep -c '^kiln-chunk: blocks ' said) || :
}
left() { find . -name '*.scratch' | head -n 1; }

chunk memory.db --threads 2

test_case 'a layer that fits into memory stays there' && (
    [ "$blocks" = 0 ] || fail "a layer that fits into memory was scattered to the disk"
    [ "$(grep -c '^kiln-chunk: planes of blocks ' said)" = 5 ] || fail "in memory, not each of the 5 blocks is scattered by itself"
    [ -z "$(left)" ] || fail "scratch is left: $(left)"
); result

# whoever works, and whoever dies: what others have put into memory stays
for n in 1 3; do
    test_case "with $n workers: what others have put into memory stays" && (
        cp base.db workers.db
        KILN_FAULT='unit=planes of blocks 1*:kill,times=1; unit=chunk*1*:abort,times=1' chunk workers.db --threads 6 --workers $n
        same memory.db workers.db
    ); result
done

cp base.db disk.db
chunk disk.db --ram 100M
groups=$blocks

test_case 'a layer larger than --ram goes by way of the disk' && (
    [ "$groups" -ge 3 ] || fail "a layer of 70 MB in 100 MB was scattered in $groups groups"
    grep -q 'of scratch in' said || fail "the need of scratch is not said beforehand"
    same memory.db disk.db
    [ -z "$(left)" ] || fail "scratch is left: $(left)"
); result

# killed while it scatters; below --scratch-dir. go DB: its process is in $pid
mkdir elsewhere
go() {
    cp base.db "$1"
    set -m; "$KILN_BIN/kiln-chunk" "$1" --layer source --max 20000 --ram 100M --scratch-dir elsewhere >said 2>&1 & pid=$!; set +m
}
kill_at() { # PATTERN: once such a file is there
    local i
    for ((i = 0; i < 6000; i++)); do
        # shellcheck disable=SC2086 # a pattern
        compgen -G $1 >/dev/null && break
        kill -0 "$pid" 2>/dev/null || fail "no $1 before the end: $(cat said)"
        sleep 0.005
    done
    kill -9 -- "-$pid" || fail "too late to kill"
    wait "$pid" 2>/dev/null || :
}

test_case 'killed while it scatters' && (
    go killed.db
    kill_at 'elsewhere/killed.db-*.scratch/chunk-*/group-*[0-9a-f]'
    kept=$(find elsewhere -name 'group-*[0-9a-f]' | wc -l)
    chunk killed.db --ram 100M --scratch-dir elsewhere
    [ "$blocks" = $((groups - kept)) ] || fail "$kept groups of $groups were whole, and $blocks made again"
    ! grep -q '^kiln-chunk: plan:' said || fail "the plan was made again"
    same memory.db killed.db
    [ -z "$(left)" ] || fail "scratch is left: $(left)"
    echo "$groups groups of blocks; $kept were whole when it was killed"
); result

test_case 'killed in the order, then with other memory' && (
    go other.db
    kill_at 'elsewhere/other.db-*.scratch/chunk-*/*.part'
    go_on=$(find elsewhere -name 'chunk-*')
    [ -n "$go_on" ] || fail "the kill left no scratch"
    chunk other.db --ram 140M --scratch-dir elsewhere
    same memory.db other.db
); result

test_case 'killed, then without what was on the disk' && (
    go lost.db
    kill_at 'elsewhere/lost.db-*.scratch/chunk-*/group-*[0-9a-f]'
    rm -r elsewhere/lost.db-*.scratch
    chunk lost.db --scratch-dir elsewhere
    same memory.db lost.db
    [ -z "$(left)" ] || fail "scratch is left: $(left)"
); result

test_case 'groups that shards left are of before where a plane changes' && (
    cp base.db planes.db
    chunk planes.db --ram 100M --shard 1/2
    [ -n "$(left)" ] || fail "a shard left no groups"
    cp memory.db before.db
    for db in planes.db before.db; do kiln knn $db --neighbors 8 >/dev/null || fail "knn of $db"; done
    chunk before.db
    chunk planes.db --ram 100M
    [ "$blocks" = "$groups" ] || fail "$blocks of $groups groups are of the new spacing"
    same before.db planes.db
    [ "$(digest before.db)" != "$(digest memory.db)" ] || fail "the spacing did not change"
    [ -z "$(left)" ] || fail "scratch is left: $(left)"
); result

test_case 'too little for a single unit: the least is said, and it is enough' && (
    cp base.db little.db
    must 5 "$KILN_BIN/kiln-chunk" little.db --layer source --max 20000 --ram 20M
    least=$(grep -o -- '--ram [0-9]*M' err | tail -n 1)
    [ -n "$least" ] || fail "no least: $(cat err)"
    # shellcheck disable=SC2086 # two words
    chunk little.db $least
    same memory.db little.db
); result
