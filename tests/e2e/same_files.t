#!/bin/bash
# Every format has the same bytes for one thread and many, one worker and several, much memory and little, and written twice; memory
# may hold anything before it is used.
. tests/e2e/lib.sh
cd "$KILN_TMP" || exit 1
scene s 6000 2 40x24
bake s x.db --max 512
mkdir a
formats=$("$KILN_BIN/kiln-export" --list-formats | awk '$3 != "levels" { print $1 }') # those have it in tests of their own
for format in $formats; do
    test_case "$format: the same bytes for any threads, workers and --ram" && (
        mkdir "a/$format"
        must 0 kiln export x.db --format "$format" -o "a/$format/" --threads 1
        for how in '--threads 8 --workers 3' '--threads 2 --ram 128M' '--threads 3 --workers 1'; do
            rm -rf b; mkdir b
            # shellcheck disable=SC2086 # words
            MALLOC_PERTURB_=$((RANDOM % 255 + 1)) must 0 kiln export x.db --format "$format" -o b/ $how
            diff -rq "a/$format" b || fail "$format with $how has other bytes"
        done
    ); result
done

test_case 'ten formats at least are looked at' && (
    [ "$(wc -w <<<"$formats")" -ge 10 ] || fail "only these formats: $formats"
); result

# pictures: many blocks of a PNG, some of noise
kiln generate scene p --gaussians 3000 --cameras 1 --size 700x500 >/dev/null || fail "generate"
bake p p.db
for format in png png16; do
    test_case "pictures as $format: the same bytes for any threads" && (
        must 0 kiln render p.db --force --format "$format" -o a/1.png --threads 1
        for threads in 1 2 5; do
            MALLOC_PERTURB_=$((RANDOM % 255 + 1)) must 0 kiln render p.db --force --format "$format" -o a/2.png --threads $threads
            cmp a/1.png a/2.png || fail "$format has other bytes with $threads threads"
        done
    ); result
done
