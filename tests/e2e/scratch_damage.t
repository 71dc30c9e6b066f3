#!/usr/bin/env bash
# Scratch that an ended run has left and that is no longer what was written: it is thrown away and made again, with a warning that
# names the file, and the bake ends with the digest of one that nothing has happened to. Every file, every kind of damage.
# starts first
. tests/e2e/lib.sh
cd "$KILN_TMP" || exit 1
damage() { python3 -SE "$HERE/damage.py" "$@" || fail "damage $*"; }
HERE=$OLDPWD/tests/e2e
HOW="first middle last seal zeros all-zeros cut empty longer unsealed other"
# each_file LEFT OTHER GOOD command...: for every file of scratch beside LEFT.db, with the same one of OTHER
each_file() {
    local left=$1 other=$2 good=$3 from file how; shift 3
    for from in "$left".db.scratch/*/*; do
        file=${from##*/}
        for how in $HOW; do
            test_case "$left: $file, $how" && (
                rm -rf m.db m.db.scratch
                cp "$left.db" m.db && cp -r "$left.db.scratch" m.db.scratch
                damage "m.db.scratch/$(basename "$(dirname "$from")")/$file" "$how" "$other".db.scratch/*/"${file%-*}"*
                must 0 "$KILN_BIN/kiln-$1" m.db "${@:2}"
                grep -q "warning: scratch '[^']*/$file' differs from what was written" err ||
                    fail "$file, $how: the warning is $(cat err)"
                [ "$(grep -c warning err)" = 1 ] || fail "$file, $how: more than one warning: $(cat err)"
                diff "$good.digest" <(digest m.db) >&2 || fail "$file, $how: another bake"
                [ ! -e m.db.scratch ] || fail "$file, $how: scratch is left"
    ); result
        done
    done
}
# left DB FAULT command...: a run that ends in the middle leaves its scratch
left() {
    local db=$1 fault=$2; shift 2
    ! KILN_FAULT=$fault kiln "$1" "$db" "${@:2}" >/dev/null 2>&1 || fail "$1 went through $fault"
    ls "$db.scratch"/*/* >/dev/null || fail "$1 left no scratch"
}
files() { (cd "$1".db.scratch/* && echo *); }
# what an undamaged folder has is taken: no file is made again
taken() { # LEFT GOOD FAULT command...
    local left=$1 good=$2 fault=$3 before; shift 3
    cp "$left.db" m.db && cp -r "$left.db.scratch" m.db.scratch
    before=$(stat -c '%i %n' m.db.scratch/*/*)
    ! KILN_FAULT=$fault kiln "$1" m.db "${@:2}" >/dev/null 2>err || fail "$1 went through $fault"
    [ "$(stat -c '%i %n' m.db.scratch/*/*)" = "$before" ] || fail "$1 has made sound files again"
    ! grep warning err || fail "$1 warns of sound files"
    must 0 "$KILN_BIN/kiln-$1" m.db "${@:2}"
    same "$good" m.db
    rm -rf m.db m.db.scratch
}

scene s 70000 1 64x64 --seed 1
scene o 70000 1 64x64 --seed 2
for k in s o; do kiln import $k $k.db >/dev/null || fail "import"; done
cp s.db whole.db && kiln knn whole.db >/dev/null || fail "knn"
digest whole.db >whole.db.digest

range="knn --range 20000"
for k in s o; do cp $k.db $k-knn.db && left $k-knn.db 'unit=range 1 *:enospc' $range; done

test_case 'knn: what an undamaged folder has is taken' && (
    [ "$(files s-knn)" = "codes means pages-64 rows" ] || fail "knn left $(files s-knn)"
    taken s-knn whole.db 'unit=range 1 *:enospc' $range
); result

each_file s-knn o-knn whole.db $range

# the order alone, then with groups of blocks, which are files where --ram has no room for all planes
for k in s o; do kiln knn $k.db >/dev/null || fail "knn of $k"; done
cut="chunk --layer source --max 4000"
cp s.db cut.db && kiln chunk cut.db --layer source --max 4000 >/dev/null || fail "chunk"
digest cut.db >cut.db.digest
for k in s o; do cp $k.db $k-order.db && left $k-order.db 'unit=plan:enospc' $cut; done

test_case 'the order of chunk: what an undamaged folder has is taken' && (
    [ "$(files s-order)" = "codes places rows" ] || fail "the order of chunk left $(files s-order)"
    taken s-order cut.db 'unit=plan:enospc' $cut
); result

each_file s-order o-order cut.db $cut

little="$cut --ram 100M --threads 1"
for k in s o; do cp $k.db $k-groups.db && left $k-groups.db 'unit=chunk *:enospc' $little; done

test_case 'groups of chunk: what an undamaged folder has is taken' && (
    [ "$(files s-groups | wc -w)" -ge 4 ] || fail "chunk left no groups: $(files s-groups)"
    taken s-groups cut.db 'unit=chunk *:enospc' $little
); result

each_file s-groups o-groups cut.db $little
