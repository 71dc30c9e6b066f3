#!/bin/bash
# gsplat's isect_tiles ran out of memory with 95,528 Gaussians at 512 x 512 whose scales had exploded, where 382,148 healthy ones
# at 1024 x 1024 pass. Replayed on generated scenes: what is predicted, bakes within 256 MiB with the bytes of bakes without a
# cap, a cap that is too small, and what kiln-prune makes of it. An eighth of the Gaussians here; KILN_THOROUGH=1 takes all.
# INCIDENT_EACH: options of every stage, of which the capped bakes have --ram 256M too (tests/gpu/incident.t).
. tests/e2e/lib.sh
CAP=$((256 << 20)) each=${INCIDENT_EACH:-}
if [ -n "${KILN_THOROUGH:-}${KILN_NO_SKIP:-}" ]; then
    healthy='382148 1 1024x1024' exploded='95528 1 512x512'
else
    healthy='47768 1 1024x1024' exploded='11941 1 512x512'
fi
# shellcheck disable=SC2086 # words on purpose
{
    scene "$KILN_TMP/healthy" $healthy
    scene "$KILN_TMP/some" $exploded --explode 400 --explode-by 6
    scene "$KILN_TMP/all" $exploded --explode 1000 --explode-by 6
}
# number NAME FILE: the first number of that name in a report
number() { sed -n "s/.*\"$1\": \([0-9]*\).*/\1/p" "$2" | head -n 1; }
# run PROGRAM MANIFEST [options]: its report to $KILN_TMP/PROGRAM.json; memory as promised
# shellcheck disable=SC2086
run() {
    local program=$1 db=$2 peak cap; shift 2
    kiln "$program" "$db" --json "$@" $each >"$KILN_TMP/$program.json" || fail "kiln-$program $* on $db"
    peak=$(number ram_peak_bytes "$KILN_TMP/$program.json") cap=$(number ram_cap_bytes "$KILN_TMP/$program.json")
    [ -z "$cap" ] || [ "${peak:-0}" -le "$cap" ] || fail "kiln-$program took $peak bytes where --ram allows $cap"
}
# bake_to DB SCENE PRUNE_OPTIONS [options of every stage]
# shellcheck disable=SC2086
bake_to() {
    local db=$1 from=$2 prune=$3 s; shift 3
    kiln import "$from" "$db" "$@" >/dev/null || fail "import $from"
    for s in knn prune chunk tiles render; do
        if [ $s = prune ]; then run $s "$db" $prune "$@"; elif [ $s = tiles ]; then run $s "$db" --tables all "$@"; else run $s \
            "$db" "$@"; fi
    done
}
as_they_are='--max-extent off --max-spacing off'
for s in healthy some all; do
    test_step "$s: a cap of 256 MiB gives the same bytes" && (
        bake_to "$KILN_TMP/$s.db" "$KILN_TMP/$s" "$as_they_are"
        bake_to "$KILN_TMP/$s.capped.db" "$KILN_TMP/$s" "$as_they_are" --ram 256M
        same "$KILN_TMP/$s.db" "$KILN_TMP/$s.capped.db"
    ); result
done

# predict NAME: what kiln-tiles says beforehand
predict() {
    run tiles "$KILN_TMP/$1.db" --predict --profile gsplat-1.5
    pairs=$(number pairs "$KILN_TMP/tiles.json") boxes=$(number box_pairs "$KILN_TMP/tiles.json")
    bytes=$(number box_bytes "$KILN_TMP/tiles.json") peak=$(number predicted_peak_bytes "$KILN_TMP/tiles.json")
    visible=$(number visible "$KILN_TMP/tiles.json")
    echo "$1: $visible visible, $pairs pairs, at most $peak bytes here; gsplat's boxes $boxes pairs, $bytes bytes"
    [ "$bytes" = $((24 * boxes)) ] && [ "$boxes" -ge "$pairs" ] ||
        fail "$1: $boxes pairs in boxes, $pairs of them real, $bytes bytes"
    [ "$peak" -gt 0 ] && [ "$peak" -le $CAP ] || fail "$1: $peak bytes are predicted, more than 256 MiB"
}

test_case 'exploded scales show in what is predicted' && (
    predict healthy
    healthy_boxes=$boxes
    predict some
    some_boxes=$boxes
    [ "$some_boxes" -gt $((2 * healthy_boxes)) ] ||
        fail "a quarter of the Gaussians, four in ten exploded, has $some_boxes pairs, the healthy scene $healthy_boxes"
    predict all
    [ "$boxes" -gt $((2 * some_boxes)) ] || fail "all exploded: $boxes pairs"
); result

test_case 'too small a cap is told with the least that works, and that works' && (
    for program in tiles render; do
        must 5 kiln $program "$KILN_TMP/some.db" --force --ram 1M --devices cpu
        least=$(sed -n 's/.*the least that works is --ram \([0-9.]*[KMGT]*\).*/\1/p' "$KILN_TMP/err")
        [ -n "$least" ] || fail "kiln-$program does not say how much memory would do: $(cat "$KILN_TMP/err")"
        for again in 1 2 3; do # counting is planned first, then what was counted
            kiln $program "$KILN_TMP/some.db" --force --ram "$least" --devices cpu >/dev/null 2>"$KILN_TMP/err" && break
            least=$(sed -n 's/.*the least that works is --ram \([0-9.]*[KMGT]*\).*/\1/p' "$KILN_TMP/err")
            [ -n "$least" ] && [ $again -lt 3 ] || fail "kiln-$program with the memory that it asked for: $(cat "$KILN_TMP/err")"
        done
        echo "kiln-$program works with --ram $least"
    done
); result

test_case 'kiln-prune normalises scales where some have exploded' && (
    predict some
    some_boxes=$boxes
    bake_to "$KILN_TMP/some.pruned.db" "$KILN_TMP/some" '' --ram 256M
    predict some.pruned
    [ $((10 * boxes)) -lt "$some_boxes" ] || fail "kiln-prune left $boxes of $some_boxes pairs"
); result

test_case 'kiln-prune --max-scale normalises scales where all have exploded' && (
    # where all have, there is nothing left to compare a scale with but a length
    predict some
    some_boxes=$boxes
    bake_to "$KILN_TMP/all.pruned.db" "$KILN_TMP/all" '--max-scale 0.05' --ram 256M
    predict all.pruned
    [ $((10 * boxes)) -lt "$some_boxes" ] || fail "kiln-prune --max-scale left $boxes pairs"
); result
