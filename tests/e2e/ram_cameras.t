#!/usr/bin/env bash
# starts first
# time-limit: 600
# --ram and many cameras, watched from outside: 3,000 of them with nothing to do take little, the least that a refusal names works
# at the first try and is kept to, and a run's record does not grow with them. And many Gaussians: what was decoded while there was
# room is not held when there is none.
. tests/e2e/lib.sh
. tests/e2e/ram.sh
cd "$KILN_TMP" || exit 1
mib() { echo "$((($1 + 1048575) >> 20)) MiB"; }
# within CAP STAGE ...: done, and never above
within() {
    local cap=$1; shift
    watched "$cap" 2 "$@" || { cat err >&2; fail "exit $?: $* --ram $cap"; }
    [ "$ram_outside" -le "$ram_cap" ] || fail "$*: $(mib "$ram_outside") were taken, --ram allows $(mib "$ram_cap")"
}
# rests CAP STAGE ...: with nothing to do. What it tells is of the run before.
rests() {
    local cap=$1; shift
    watched "${cap}M" 2 "$@" || { cat err >&2; fail "exit $?: $* --ram ${cap}M"; }
    grep -q 'nothing to do' err || { cat err >&2; fail "$*: there was something to do"; }
    [ "$ram_outside" -le $((cap << 20)) ] || fail "$* with nothing to do: $(mib "$ram_outside") were taken, --ram allows $cap MiB"
}
# least STAGE ...: what is named is enough at once, and is not above MOST
least() {
    local most=$1; shift
    refused 1M 2 "$@"
    [ "$ram_least" -le "$most" ] || fail "$*: $ram_least MiB are asked for, $most are enough"
    within "${ram_least}M" "$@"
}

scene c 300 3000 16x16
kiln import c c.db >/dev/null && kiln knn c.db >/dev/null && kiln prune c.db >/dev/null && kiln chunk c.db >/dev/null || fail "bake"
# one list after the other: what the first names does for the second
test_step 'tiles with the least --ram' && (
    least 64 tiles c.db --tables all
); result

test_step 'render with the least --ram' && (
    least 64 render c.db --format none
); result

test_case 'nothing to do takes little' && (
    rests 40 import c c.db
    for stage in knn prune chunk 'tiles c.db --tables all' 'render c.db --format none'; do
        # shellcheck disable=SC2086 # words
        case $stage in *' '*) rests 40 $stage ;; *) rests 40 "$stage" c.db ;; esac
    done
); result

test_case 'import with the least --ram' && (
    rm -f again.db*; refused 1M 2 import c again.db; rm -f again.db*; within "${ram_least}M" import c again.db
); result

test_case 'prune with the least --ram' && (
    least 64 prune c.db --force
); result

test_case 'lod with the least --ram' && (
    cp c.db lod.db; refused 1M 2 lod lod.db; within "${ram_least}M" lod lod.db
); result

test_case 'the record of a run does not grow with the cameras' && (
    longest=$(sqlite3 c.db 'SELECT max(length(counters)) FROM run')
    [ "$longest" -lt 100000 ] || fail "the record of a run has $longest bytes"
    [ "$(sqlite3 c.db "SELECT json_extract(counters, '\$.views_left_out') FROM run WHERE stage = 'render' ORDER BY id DESC LIMIT 1")" = 3000 ] ||
        fail "the record does not say how many views it lacks"
); result

test_case '--json has all cameras' && (
    kiln render c.db --format none --background white --json >all.json || fail "render"
    py all_views || fail "--json lacks views"
); result

test_case 'counting has room to keep all planes, listing has not' && (
    scene g 1000000 2 640x360
    kiln import g g.db >/dev/null && kiln knn g.db >/dev/null && kiln prune g.db >/dev/null &&
        kiln chunk g.db --max 16000 >/dev/null ||
        fail "bake"
    kiln tiles g.db --tables all >/dev/null || fail "tiles"
    refused 60M 2 tiles g.db --tables all --force
    within "${ram_least}M" tiles g.db --tables all --force
); result
