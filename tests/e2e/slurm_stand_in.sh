#!/bin/sh
# slurm_stand_in -- stands for kiln and its stages in a test of jobs: units are lines of text, a manifest is a file of them, a part
# ends with the line "end". Called by these names, by links to it:
#
#   kiln pipeline SCENE --out OUT --print-commands    stages import (1 round), tiles (2 rounds), export (none)
#   kiln info MANIFEST --json
#   kiln-STAGE [SCENE] MANIFEST [--allow-network-fs | --plan --tasks N | --shard I/N --part DIR | --gather DIR --remove-parts --tasks N]
#
# A round has 10 units. OUT/computed gets a line "STAGE ROUND UNIT where" for each unit that is computed. A file
# OUT/fault-STAGE-ROUND-TASK makes that task do what its words say, one each time: kill, torn, hang, or end with a number; TASK is 0 for
# the plan, "gather" the gather, whose work is done, and "open" a plan beside one that stands, which is counted in OUT/stood.
set -u
bin=${0%/*} name=${0##*/}
if [ "$name" = kiln ]; then
    case $1 in
    pipeline)
        scene=$2 out=$4
        echo "'$bin/kiln-import' '$scene' '$out/manifest.db' '--allow-partial=yes'"
        echo "'$bin/kiln-tiles' '$out/manifest.db' '--profile=it'\\''s'"
        echo "'$bin/kiln-export' '$out/manifest.db'" ;;
    info)
        for s in import tiles export; do
            state=absent
            ! grep -q "^fresh $s\$" "$2" || state=fresh
            printf '      "name": "%s",\n      "state": "%s",\n' $s $state
        done ;;
    esac
    exit
fi

stage=${name#kiln-}
if [ "$1" = --help-json ]; then
    [ "$stage" = export ] || echo '  {"name": "plan", "kind": "bool"},'
    exit
fi
[ "$stage" != import ] || shift
db=$1; shift
[ "$stage" != import ] || { [ "$1" = --allow-partial=yes ] || exit 70; shift; }
[ "$stage" != tiles ] || { [ "$1" = "--profile=it's" ] || exit 70; shift; }
out=${db%/*}
claim=$db.claim

fault() { # what the fault of this task is now, which is taken away
    file=$out/fault-$stage-$1
    [ -e "$file" ] || return
    read -r now later <"$file"
    if [ -n "$later" ]; then echo "$later" >"$file"; else rm "$file"; fi
    echo "$now"
}
first_round() { # the first with a unit missing; empty: none
    last=1; [ "$stage" != tiles ] || last=2
    for r in $(seq $last); do [ "$(grep -c "^$stage $r " "$db")" -eq 10 ] || { echo "$r"; return; }; done
}
finish() { grep -q "^fresh $stage\$" "$db" || echo "fresh $stage" >>"$db"; }
plan() {
    round=$(first_round)
    [ -n "$round" ] || { finish; exit 0; }
    what=$(fault "$round-0")
    [ -z "$what" ] || exit "$what"
    printf 'splatkiln-claim 1\nstage %s\nplan ab%d0\nhost here\ntasks %d\nend\n' "$stage" "$round" "$1" >"$claim.new"
    mv "$claim.new" "$claim"
    exit 0
}

case ${1:-} in
--plan)
    if grep -qsx "stage $stage" "$claim"; then
        echo "$stage of $3" >>"$out/stood"
        what=$(fault open)
        exit "${what:-0}"
    fi
    [ ! -e "$claim" ] || exit 75
    [ "$stage" != import ] || : >>"$db"
    plan "$3" ;;
--shard)
    i=${2%/*} n=${2#*/} parts=$4
    round=$(sed -n 's/^plan ab\([0-9]\)0$/\1/p' "$claim")
    part=$parts/$stage-ab${round}0-$i-of-$n.part
    [ ! -e "$part" ] || exit 0
    what=$(fault "$round-$i")
    case $what in
    kill) kill -KILL $$ ;;
    hang) sleep 1000 ;;
    torn) echo "$stage $round 1" >"$part"; exit 0 ;;
    '') ;;
    *) exit "$what" ;;
    esac
    for u in $(seq 10); do
        [ $((u * n / 11 + 1)) -eq "$i" ] || continue
        echo "$stage $round $u"
        echo "$stage $round $u gpu=${CUDA_VISIBLE_DEVICES:-}" >>"$out/computed"
    done >"$part.new"
    echo end >>"$part.new"
    mv "$part.new" "$part" ;;
--gather)
    parts=$2
    round=$(sed -n 's/^plan ab\([0-9]\)0$/\1/p' "$claim")
    for part in "$parts/$stage-ab${round}"0-*.part; do
        [ -e "$part" ] || continue
        if [ "$(tail -n 1 "$part")" = end ]; then grep -v '^end$' "$part" >>"$db"; else mv "$part" "$part.bad"; fi
    done
    sort -u "$db" -o "$db"
    for u in $(seq 10); do
        grep -q "^$stage $round $u\$" "$db" && continue
        echo "$stage $round $u here" >>"$out/computed"
        echo "$stage $round $u" >>"$db"
    done
    rm -f "$claim" "$parts/$stage-ab${round}"0-*.part
    what=$(fault "$round-gather")
    (plan "$5") || exit
    exit "${what:-0}" ;;
--allow-network-fs)
    [ ! -e "$claim" ] || exit 75
    finish ;;
*) exit 2 ;;
esac
