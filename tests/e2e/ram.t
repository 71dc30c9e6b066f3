#!/usr/bin/env bash
# --ram is never exceeded, by what the record says and by what /proc says; the bytes are those of a bake with no cap; a cap too
# small for one unit ends before any work and names the least that does. And layers of which blocks are missing go their way.
. tests/e2e/lib.sh
cd "$KILN_TMP" || exit 1
cap_mib=120
scene s 300000 2 64x64
number() { python3 -c 'import json, sys; print(json.load(open(sys.argv[2]))[sys.argv[1]])' "$1" "$2"; }

# A loop beside the run: the largest sum over its process group, in KiB, to the file peak. What a run of some seconds takes is seen
# dozens of times.
watch() {
    local group=$1 most=0 sum pids
    while kill -0 "$group" 2>/dev/null; do
        pids=$(pgrep -g "$group" -d ' ') || break
        # shellcheck disable=SC2046,SC2086 # a list
        sum=$(cat $(printf '/proc/%s/status ' $pids) 2>/dev/null | awk '/^Rss(Anon|Shmem):/ { s += $2 } END { print s + 0 }')
        ((sum > most)) && most=$sum
        sleep 0.01
    done
    echo "$most" >peak
}
# run STAGE options: under the cap, watched
run() {
    local stage=$1 pid watcher; shift
    set -m; "$KILN_BIN/kiln-$stage" "$@" --devices cpu --ram "${cap_mib}M" --json --quiet >"$stage.json" 2>"$stage.err" & pid=$!
    set +m
    watch "$pid" & watcher=$!
    wait "$pid" || { cat "$stage.err" >&2; fail "kiln-$stage under ${cap_mib} MiB"; }
    wait "$watcher"
    [ -s "$stage.err" ] && { cat "$stage.err" >&2; fail "kiln-$stage complains"; }
    [ "$(number ram_cap_bytes "$stage.json")" = $((cap_mib << 20)) ] || fail "$stage: not the cap that was given"
    [ "$(number ram_predicted_bytes "$stage.json")" -le $((cap_mib << 20)) ] || fail "$stage: more than the cap is predicted"
    [ "$(number ram_peak_bytes "$stage.json")" -le "$(number ram_cap_bytes "$stage.json")" ] ||
        fail "$stage: the record exceeds the cap"
    [ "$(number ram_peak_bytes "$stage.json")" -gt $((1 << 20)) ] || fail "$stage: nothing was measured"
    [ "$(cat peak)" -le $((cap_mib << 10)) ] || fail "$stage took $(cat peak) KiB, --ram allows $((cap_mib << 10))"
    [ "$(cat peak)" -gt 1024 ] || fail "$stage was not watched"
}

kiln import s free.db >/dev/null && kiln knn free.db >/dev/null && kiln prune free.db >/dev/null && kiln chunk free.db >/dev/null ||
    fail "bake"
kiln export free.db -o free.ply >/dev/null || fail "export"

test_step 'import under the cap' && (
    run import s capped.db
); result

for stage in knn prune chunk; do
    test_step "$stage under the cap" && (
        run $stage capped.db
    ); result
done

test_case 'export under the cap, and the same bytes' && (
    run export capped.db -o capped.ply
    same free.db capped.db
    cmp free.ply capped.ply || fail "the exported files differ"
); result

test_case 'a cap that is too small: exit 5, nothing left behind, and what the sentence says works' && (
    must 5 kiln import s tiny.db --devices cpu --ram 20M
    [ ! -e tiny.db ] || fail "an import without memory left a manifest"
    cp capped.db tiny.db
    before=$(digest tiny.db)
    least() { sed -n 's/.*the least that works is --ram \([0-9]*\)M$/\1/p' err; }
    for stage in prune chunk; do
        must 5 kiln $stage tiny.db --devices cpu --ram 20M --force
        mib=$(least)
        [ -n "$mib" ] || fail "$stage does not say the least that works: $(cat err)"
        must 5 kiln $stage tiny.db --devices cpu --ram "$((mib - 8))M" --force
        must 0 kiln $stage tiny.db --devices cpu --ram "${mib}M" --force
    done
    [ "$(digest tiny.db)" = "$before" ] || fail "--force under the least cap changed something"
); result

test_case 'blocks that fail on every device: later stages go on when told, and the rerun makes it whole' && (
    KILN_FAULT='unit=block 2:abort' must 7 kiln import s part.db --devices cpu
    must 4 kiln knn part.db
    must 0 kiln info part.db --json
    kiln knn part.db --allow-partial >/dev/null || fail "knn of a partial layer"
    KILN_FAULT='unit=block 00000001:abort' must 7 kiln prune part.db --allow-partial --devices cpu
    must 4 kiln chunk part.db
    must 4 kiln export part.db --layer pruned -o part.ply
    must 0 kiln export part.db --layer pruned --allow-partial -o part.ply
    [ "$(head -c 400 part.ply | sed -n 's/^element vertex //p')" = $((300000 - 2 * 65536)) ] ||
        fail "two blocks are missing, not others"
    must 0 kiln verify part.db
    for stage in import knn prune chunk; do
        if [ $stage = import ]; then must 0 kiln import s part.db; else must 0 kiln $stage part.db; fi
    done
    same free.db part.db
); result
