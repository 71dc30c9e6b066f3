#!/bin/sh
# slurm_stand_in -- stands for stages and kiln-info in a test of jobs: units are lines of text, a manifest is a file of them, a part
# ends with the line "end". Called by these names, by links to it that lie beside a kiln:
#
#   kiln-info MANIFEST --json --allow-network-fs
#   kiln-STAGE --help-json          what the real stage answers: KILN_BIN
#   kiln-STAGE [SCENE] MANIFEST OPTIONS... [--allow-network-fs | --plan --tasks N | --shard I/N --part DIR |
#                                           --gather DIR --remove-parts --tasks N]
#
# import has 1 round, tiles has 2, export none. A round has 10 units. OUT/computed gets a line "STAGE ROUND UNIT where" for each unit
# that is computed. A file OUT/fault-STAGE-ROUND-TASK makes that task do what its words say, one each time: kill, torn, hang, or end
# with a number; TASK is 0 for the plan, "gather" the gather, whose work is done, and "open" a plan beside one that stands, which is
# counted in OUT/stood.
set -u
name=${0##*/}
stage=${name#kiln-}
if [ "$1" = --help-json ]; then exec "${KILN_BIN:?}/$name" --help-json; fi
if [ "$stage" = info ]; then
    printf '{"stages": ['
    comma=
    for s in import tiles export; do
        state=absent
        ! grep -q "^fresh $s\$" "$1" || state=fresh
        printf '%s{"name": "%s", "state": "%s"}' "$comma" $s $state
        comma=', '
    done
    echo ']}'
    exit
fi

[ "$stage" != import ] || shift
db=$1; shift
quoted=no
while :; do # the options of kiln pipeline come first
    case ${1:-} in
    "--scratch-dir=it's here") quoted=yes ;;
    --allow-partial=yes | --for-viewers) ;;
    *) break ;;
    esac
    shift
done
[ $quoted = yes ] || [ "$stage" = export ] || exit 70
out=${db%/*}
claim=$db.claim
key() { printf '%028dab%d0' 0 "$1"; } # of a round's plan

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
claimed_round() { sed -n 's/^plan 0*ab\([0-9]\)0$/\1/p' "$claim"; }
finish() { grep -q "^fresh $stage\$" "$db" || echo "fresh $stage" >>"$db"; }
plan() {
    round=$(first_round)
    [ -n "$round" ] || { finish; exit 0; }
    what=$(fault "$round-0")
    [ "$what" != hang ] || { sleep 1000; exit 70; }
    [ -z "$what" ] || { echo "kiln-$stage: $stage is told to fail" >&2; exit "$what"; }
    printf 'splatkiln-claim 1\nstage %s\nplan %s\nhost here\nstart now\ntasks %d\nunits 10\ndue 0-9\nwhat units\nend\n' \
        "$stage" "$(key "$round")" "$1" >"$claim.new"
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
    round=$(claimed_round)
    part=$parts/$stage-$(key "$round")-$i-of-$n.part
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
    round=$(claimed_round)
    for part in "$parts/$stage-$(key "$round")"-*.part; do
        [ -e "$part" ] || continue
        if [ "$(tail -n 1 "$part")" = end ]; then grep -v '^end$' "$part" >>"$db"; else mv "$part" "$part.bad"; fi
    done
    sort -u "$db" -o "$db"
    for u in $(seq 10); do
        grep -q "^$stage $round $u\$" "$db" && continue
        echo "$stage $round $u here" >>"$out/computed"
        echo "$stage $round $u" >>"$db"
    done
    rm -f "$claim" "$parts/$stage-$(key "$round")"-*.part
    what=$(fault "$round-gather")
    (plan "$5") || exit
    exit "${what:-0}" ;;
--allow-network-fs)
    [ ! -e "$claim" ] || exit 75
    finish ;;
*) exit 2 ;;
esac
