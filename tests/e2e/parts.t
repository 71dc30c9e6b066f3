#!/usr/bin/env bash
# starts first
# Of the stages that count before they draw up what is to be computed: shards are a partition, whatever is stored and whatever --ram
# is, and the --ram that a refusal names works. And lists of units that share what they are told hold it once.
. tests/e2e/lib.sh
cd "$KILN_TMP" || exit 1
number() { python3 -c 'import functools, json, sys
print(functools.reduce(lambda v, k: v[k], sys.argv[1].split("."), json.load(open(sys.argv[2]))))' "$1" out; }
least() { sed -n 's/.*the least that works is --ram \([0-9]*\)M$/\1/p' err; }

scene s 40000 5 1280x720
kiln import s base.db >/dev/null && kiln knn base.db >/dev/null && kiln prune base.db >/dev/null && kiln chunk base.db >/dev/null ||
    fail "bake"
fresh() { rm -rf m; mkdir m; cp base.db m/manifest.db; }

# what a refusal names works, once nothing is counted and once all is
named_works() { # stage, options
    local stage=$1 mib less; shift
    fresh
    must 5 kiln "$stage" m/manifest.db --devices cpu --ram 1M "$@"
    mib=$(least)
    [ -n "$mib" ] || fail "$stage does not say the least that works: $(cat err)"
    must 0 kiln "$stage" m/manifest.db --devices cpu --ram "${mib}M" "$@"
    fresh
    for ((less = 44; less < mib; less += 16)); do # some of these count, and then name exactly
        kiln "$stage" m/manifest.db --devices cpu --ram "${less}M" "$@" >out 2>err && return
        mib=$(least)
        [ -n "$mib" ] || fail "$stage --ram ${less}M: $(cat err)"
    done
    must 0 kiln "$stage" m/manifest.db --devices cpu --ram "${mib}M" "$@"
}

test_case 'tiles: the --ram that a refusal names works' && (
    named_works tiles
); result

test_case 'render: the --ram that a refusal names works' && (
    named_works render --format none
); result

# each shard once, then nothing is left; with little memory the cameras are counted first
partition() { # stage, options
    local stage=$1 i sum=0; shift
    fresh
    for i in 1 2 3; do
        must 0 kiln "$stage" m/manifest.db --devices cpu --json --shard $i/3 "$@"
        sum=$((sum + $(number units.done out)))
    done
    must 0 kiln "$stage" m/manifest.db --devices cpu --json "$@"
    [ "$(number units.done out)" = 0 ] || fail "after all shards of $stage $* $(number units.done out) units were left"
    [ "$(number units.quarantined out)" = 0 ] || fail "a unit of $stage was given up"
    echo "$sum" >sum
}
fresh
must 5 kiln render m/manifest.db --format none --devices cpu --ram 1M
tight=$(($(least) - 4))

test_case 'shards of tiles are a partition' && (
    partition tiles
); result

test_case 'shards of tiles are a partition with little memory' && (
    partition tiles --ram "${tight}M"
); result

test_case 'shards of render are a partition' && (
    partition render --format none
    [ "$(cat sum)" = 5 ] || fail "shards drew $(cat sum) pictures of 5"
); result

test_case 'shards of render are a partition with little memory' && (
    partition render --format none --ram "${tight}M"
    [ "$(cat sum)" = 10 ] || fail "$(cat sum) units, not 5 cameras counted and 5 drawn"
); result

test_case 'the choice of chunks goes to workers with each unit and is held once' && (
    scene t 10000 1 64x64
    kiln import t many.db >/dev/null && kiln knn many.db >/dev/null &&
        kiln chunk many.db --layer source --max 1 --min 1 >/dev/null ||
        fail "many chunks"
    must 0 kiln export many.db -o many.ply --json
    cmp t/scene.ply many.ply || fail "the export of many chunks differs"
    [ "$(number peak_rss_bytes.parent out)" -le $((72 << 20)) ] || fail "the parent took $(number peak_rss_bytes.parent out) bytes"
); result
