#!/usr/bin/env bash
# A plan stands, and the next step is given other options than it was made with, or none: exit 4, and neither the manifest nor the
# claim changes, though the stage is fresh as it was asked for now. Every stage with rounds, every stored option. With the plan's
# options the rounds end as one run does.
# starts first
. tests/e2e/lib.sh
HERE=$PWD/tests/e2e
cd "$KILN_TMP" || exit 1
export KILN_BIN
program() { # STAGE MANIFEST: the words of the command
    if [ "$1" = import ]; then echo "$1 s $2"; else echo "$1 $2"; fi
}
# mismatch STAGE options: the stage of base.db is fresh without them
mismatch() {
    local stage=$1; shift
    rm -rf m.db* one.db* parts renders
    cp base.db m.db && cp base.db one.db
    # shellcheck disable=SC2046
    must 0 kiln $(program $stage one.db) "$@"
    rm -rf renders
    # shellcheck disable=SC2046
    must 0 kiln $(program $stage m.db) "$@" --plan --tasks 2
    [ -e m.db.claim ] || fail "$stage: no plan stands"
    python3 -BSE "$HERE/plan_options.py" "$stage" m.db s "$@" || fail "$stage"
    for ((round = 0; round < 9; round++)); do
        [ -e m.db.claim ] || break
        # shellcheck disable=SC2046
        for i in 1 2; do must 0 kiln $(program $stage m.db) "$@" --shard $i/2 --part parts; done
        # shellcheck disable=SC2046
        must 0 kiln $(program $stage m.db) "$@" --gather parts
    done
    [ ! -e m.db.claim ] || fail "$stage: the claim stays"
    same one.db m.db
}
scene s 140000 3 64x48 # three blocks
kiln import s base.db >/dev/null && kiln knn base.db >/dev/null && kiln prune base.db >/dev/null || fail "bake"
kiln chunk base.db --max 9000 >/dev/null && kiln lod base.db >/dev/null && kiln tiles base.db >/dev/null &&
    kiln render base.db >/dev/null ||
    fail "bake"

test_case 'a plan of import stands while other options are given' && (
    mismatch import --translate=1,0,0
); result

test_case 'a plan of knn stands while other options are given' && (
    mismatch knn --neighbors=4 --range=40000
); result

test_case 'a plan of prune stands while other options are given' && (
    mismatch prune --min-opacity=0.3
); result

test_case 'a plan of chunk stands while other options are given' && (
    mismatch chunk --max=8000
); result

test_case 'a plan of lod stands while other options are given' && (
    mismatch lod --levels=2
); result

test_case 'a plan of tiles stands while other options are given' && (
    mismatch tiles --profile=gsplat-1.5
); result

test_case 'a plan of render stands while other options are given' && (
    mismatch render --background=1,0,0
); result

test_case 'every stage with rounds is tried' && (
    stages=$(grep -l 'KILN_PROGRAM_ROUNDS' $(dirname "$HERE")/../stages/*.c | wc -l)
    [ "$stages" = 7 ] || fail "$stages stages have rounds; the test has 7"
); result

test_case 'what is asked for and not stored: a forecast of a pruned bake' && (
    export KILN_ROUND_S=0
    cp base.db n.db
    must 0 kiln prune n.db --sizes 100,200 --plan --tasks 2
    sha256sum n.db n.db.claim >before
    for other in "" "--sizes 100" "--all-cameras" "--sizes 100,200 --all-cameras"; do
        must 4 kiln prune n.db $other --shard 1/2 --part numbers
        must 4 kiln prune n.db $other --gather numbers
        must 4 kiln prune n.db $other --plan
    done
    sha256sum --quiet -c before || fail "a refused step has changed the plan"
    for i in 1 2; do must 0 kiln prune n.db --sizes 100,200 --shard $i/2 --part numbers; done
    must 0 kiln prune n.db --sizes 100,200 --gather numbers
    [ ! -e n.db.claim ] || fail "a forecast leaves its claim"
); result

test_case "a gather that was killed between its commit and the claim's end is run again" && (
    unset KILN_ROUND_S
    cp base.db k.db
    must 0 kiln tiles k.db --profile gsplat-1.6 --plan
    while [ -e k.db.claim ]; do
        cp k.db.claim claim
        must 0 kiln tiles k.db --profile gsplat-1.6 --gather parts
    done
    cp claim k.db.claim
    must 4 kiln tiles k.db --profile inria --gather parts
    [ -e k.db.claim ] || fail "a refused gather removes the claim"
    must 0 kiln tiles k.db --profile gsplat-1.6 --shard 1/1 --part parts
    must 0 kiln tiles k.db --profile gsplat-1.6 --gather parts
    [ ! -e k.db.claim ] || fail "the claim stays after a second gather"
); result
