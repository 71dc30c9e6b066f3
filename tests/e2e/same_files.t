#!/bin/bash
# Every format has the same bytes for one thread and many, one worker and several, much memory and little, and written twice.
. tests/e2e/lib.sh
cd "$KILN_TMP" || exit 1
scene s 6000 2 40x24
bake s x.db --max 512
mkdir a
formats=$("$KILN_BIN/kiln-export" --list-formats | awk '{ print $1 }')
for format in $formats; do
    mkdir "a/$format"
    must 0 kiln export x.db --format "$format" -o "a/$format/" --threads 1
    for how in '--threads 8 --workers 3' '--threads 2 --ram 128M' '--threads 3 --workers 1'; do
        rm -rf b; mkdir b
        # shellcheck disable=SC2086 # words
        must 0 kiln export x.db --format "$format" -o b/ $how
        diff -rq "a/$format" b || fail "$format with $how has other bytes"
    done
done
[ "$(wc -w <<<"$formats")" -ge 10 ] || fail "only these formats: $formats"
