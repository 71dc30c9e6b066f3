#!/usr/bin/env bash
# The least --ram that a refusal of export, lod --refine, prune, render, stats or convert --count names is enough for all that follows: every format, alone
# and among several, with filters, a move and --report-loss. What is then taken, seen from outside, stays below it.
. tests/e2e/lib.sh
. tests/e2e/ram.sh
cd "$KILN_TMP" || exit 1
scene s 24000 3 160x100
kiln import s s.db >/dev/null && kiln knn s.db >/dev/null && kiln prune s.db >/dev/null || fail "bake"
kiln chunk s.db --max 6000 >/dev/null && kiln lod s.db >/dev/null && kiln tiles s.db --tables all >/dev/null ||
    fail "chunk, lod, tiles"

# enough WHAT STAGE [arguments]
enough() {
    local what=$1 code; shift
    "$KILN_BIN/kiln-$1" "${@:2}" --ram 1M --devices cpu --threads 2 -q >out 2>err; code=$?
    [ $code = 5 ] || { cat err >&2; fail "$what: exit $code under --ram 1M"; }
    ram_least=$(least_named)
    [ -n "$ram_least" ] || fail "$what: the least that works is not named: $(cat err)"
    watched "${ram_least}M" 2 "$@" || { cat err >&2; fail "$what: --ram ${ram_least}M was named, and is refused"; }
    [ "$ram_outside" -le "$ram_cap" ] || fail "$what: $ram_outside bytes were taken, --ram allows $ram_cap"
    [ "$ram_outside" -le "$ram_predicted" ] || fail "$what: $ram_outside bytes were taken, $ram_predicted were predicted"
}
# named WHAT STAGE [arguments]: a case of it
named() {
    test_case "$1: the least --ram that a refusal names is enough" && (
        enough "$@"
    ); result
}

for format in $("$KILN_BIN/kiln-export" --list-formats | awk '{print $1}'); do
    named "$format" export s.db --format "$format" -o "written-$format"
done
for format in ply spz4 ksplat; do
    named "$format of a part" export s.db --format "$format" -o "part-$format" --filter-box=-1e3,-1e3,-1e3,1e3,1e3,1e3 --scale 2
done
for format in spz ksplat2; do
    named "$format with --report-loss" export s.db --format "$format" -o "lost-$format" --report-loss 2
done
must 0 mkdir several
named "several formats" export s.db --format splat,ksplat,spz -o several/
# Files that are unpacked before their rows are checked and counted; and a bake, which is read as it is.
for file in several/s.spz written-spz4 written-sog written-ply s.db; do
    [ -e "$file" ] || file=$(ls -d several/*.spz)
    named "stats of $file" stats "$file"
    named "stats --pairs of $file" stats "$file" --pairs 512x512
done
test_case 'convert --count: the first refusal names enough for import, chunks, levels and export' && (
    "$KILN_BIN/kiln" generate scene big -n 50000 -c 1 -q || fail generate
    must 5 "$KILN_BIN/kiln" convert big/scene.ply part.ply --count 1000 --ram 1M --devices cpu --threads 2
    ram_least=$(least_named)
    must 0 "$KILN_BIN/kiln" convert big/scene.ply part.ply --count 1000 --ram "${ram_least}M" --devices cpu --threads 2
); result
# A third of the Gaussians in chunks of the same size: refining takes most of the time, and memory by the chunk.
scene r 8000 3 160x100
kiln import r r.db >/dev/null && kiln knn r.db >/dev/null && kiln chunk r.db --layer source --max 6000 >/dev/null && kiln lod r.db >/dev/null ||
    fail "bake to refine"
named "lod --refine" lod r.db --refine 2

# What looks through large pictures takes more than a block, and comes after minutes of other work.
scene p 3000 2 1600x1200
kiln import p p.db >/dev/null && kiln knn p.db >/dev/null || fail "bake to prune"
for how in '--keep 50%' '--min-visibility 0.01' '--keep 50% --dry-run' '--merge --outlier-sor 8,2'; do
    test_case "prune $how: less than the named --ram is refused before any work" && (
        cp p.db t.db
        # shellcheck disable=SC2086
        enough "prune $how" prune t.db $how
        for less in 3 6 12 24; do
            cp p.db t.db
            # shellcheck disable=SC2086
            must 5 "$KILN_BIN/kiln-prune" t.db $how --devices cpu --threads 2 --ram $((ram_least - less))M -v
            ! grep -q 'measuring scales\|looking for' err || fail "under $less MiB less: $(cat err)"
            [ "$(sqlite3 t.db "SELECT count(*) FROM unit WHERE stage = 'prune'")" = 0 ] || fail "$less MiB less: units are stored"
            [ "$(least_named)" = "$ram_least" ] || fail "$less MiB less: $(cat err)"
        done
    ); result
done

# Pictures of other sizes and from other places than the bake's cameras have.
for how in '--scale 8' '--size 1200x1200' '--scale 8 --crop 64x64+5+5' '--orbit 3 --scale 8' '--interpolate 3 --scale 8'; do
    test_case "render $how: the least --ram that any refusal names is enough" && (
        for cap in 1 50 75; do
            # shellcheck disable=SC2086
            "$KILN_BIN/kiln-render" s.db $how -o sized/ --devices cpu --threads 2 -q --ram ${cap}M 2>err && break
            ram_least=$(least_named)
            [ -n "$ram_least" ] || fail "under $cap MiB: $(cat err)"
            # shellcheck disable=SC2086
            must 0 "$KILN_BIN/kiln-render" s.db $how -o sized/ --devices cpu --threads 2 -q --ram "${ram_least}M"
        done
    ); result
done
