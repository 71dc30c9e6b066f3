#!/usr/bin/env bash
# starts first
# time-limit: 900
# Every stage, watched from outside by another program (tests/bench/ram_watch.c): never above --ram, never above what it predicted,
# without a cap neither. 64 threads become fewer before a cap is refused: what a refusal names is the same for 1 and for 64, and
# works at the first try. With --force a stage compares what it makes with what is there, so bits that depend on the cap are exit
# 70.
. tests/e2e/lib.sh
. tests/e2e/ram.sh
cd "$KILN_TMP" || exit 1
scene s 300000 2 320x200
kiln import s base.db >/dev/null && kiln knn base.db >/dev/null && kiln prune base.db >/dev/null || fail "bake"
kiln chunk base.db --max 16000 >/dev/null && kiln tiles base.db --tables all >/dev/null || fail "chunk, tiles"
kiln render base.db --format none >/dev/null || fail "render"

mib() { echo "$((($1 + 1048575) >> 20)) MiB"; }
# within CAP THREADS STAGE ...: done, and never above
within() {
    watched "$@" || { cat err >&2; fail "exit $?: $*"; }
    grep -q 'report this' err && { cat err >&2; fail "$*: it says itself that it took too much"; }
    [ "$ram_looks" -gt 10 ] || fail "$*: not watched"
    [ "$ram_outside" -gt $((2 << 20)) ] || fail "$*: $(mib "$ram_outside") is no program"
    [ "$ram_outside" -le "$ram_cap" ] || fail "$*: $(mib "$ram_outside") were taken, --ram allows $(mib "$ram_cap")"
    [ "$ram_outside" -le "$ram_predicted" ] || fail "$*: $(mib "$ram_outside") were taken, $(mib "$ram_predicted") were predicted"
    [ "$ram_predicted" -le "$ram_cap" ] || fail "$*: $(mib "$ram_predicted") are predicted, --ram allows $(mib "$ram_cap")"
}

for stage in import knn prune chunk tiles render export; do
    test_case "$stage: never above --ram, nor above what it predicted" && (
        line() { stage_line "$stage" s base.db; }
        # shellcheck disable=SC2046 # words
        {
            within '' 2 $(line)
            refused 30M 1 $(line)
            least=$ram_least
            refused 30M 64 $(line)
            [ "$ram_least" = "$least" ] || fail "$stage: $least MiB do for one thread, 64 threads want $ram_least"
            within "${least}M" 64 $(line)
            case $stage in tiles | render) within "$((least * 2))M" 64 $(line) ;; esac # whose caps decide how pictures are cut
        }
    ); result
done

test_case 'tables: counting has room, what the counts say has not' && (
    # shellcheck disable=SC2046 # words
    refused 50M 64 $(stage_line tiles s base.db)
    # shellcheck disable=SC2046
    within "${ram_least}M" 64 $(stage_line tiles s base.db)
); result

test_case 'pictures in slabs, under several caps' && (
    # shellcheck disable=SC2046
    refused 50M 64 $(stage_line render s base.db)
    for cap in "${ram_least}M" 72M; do
        # shellcheck disable=SC2046
        within "$cap" 2 $(stage_line render s base.db)
        [ "$ram_slabs" -gt 1 ] || fail "with $cap nothing is drawn in slabs"
    done
); result

test_case 'the bake is whole' && (
    must 0 kiln verify base.db
); result
