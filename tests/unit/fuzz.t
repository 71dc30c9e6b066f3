#!/usr/bin/env bash
# Every seed of tests/data/fuzz goes through its harness (tests/fuzz) without a fuzzer; every reader of Gaussians and points has a
# harness with seeds; a harness without seeds, and seeds without a harness, are an error.
# time-limit: 600
set -u
. tests/cases.sh
: "${KILN_BIN:=$PWD/build/bin}"
replay=$KILN_BIN/../tests/fuzz/replay
[ -n "${KILN_TMP:-}" ] || { KILN_TMP=$(mktemp -d); at_exit 'rm -rf "$KILN_TMP"'; }

test_case 'every seed goes through its harness' && (
    "$replay" tests/data/fuzz >"$KILN_TMP/said" 2>"$KILN_TMP/trace" ||
        { cat "$KILN_TMP/said"; tail -n 20 "$KILN_TMP/trace"; fail 'a seed fails'; }
    cat "$KILN_TMP/said"
); result

# The programs' own lists of readers, not the table that the rows are made from.
formats=$("$KILN_BIN/kiln-import" --list-formats | sed -n 's/^\([a-z0-9-]*\) .*/\1/p')
[ "$(wc -w <<<"$formats")" -ge 3 ] || fail "kiln-import --list-formats names too few: $formats"
listed=$("$replay" --list)

test_case 'every reader has a harness with seeds' && (
    for format in $formats; do
        grep -qx "reader-$format" <<<"$listed" || fail "the reader '$format' has no harness"
        [ -n "$(find "tests/data/fuzz/reader-$format" -type f 2>/dev/null)" ] || fail "the reader '$format' has no seeds"
    done
); result

test_case 'every packing has seeds' && (
    while read -r suffix; do
        compgen -G "tests/data/fuzz/unpack/*$suffix" >/dev/null ||
            fail "the packing of *$suffix has no seeds in tests/data/fuzz/unpack"
    done < <("$KILN_BIN/kiln-import" --list-formats | awk '$1 == "(packed)" { print $2 }')
); result

test_case 'every folder of seeds belongs to a harness' && (
    for folder in tests/data/fuzz/*/; do
        grep -qx "$(basename "$folder")" <<<"$listed" || fail "$folder belongs to no harness"
    done
); result

test_case 'a harness without seeds is named' && (
    for folder in tests/data/fuzz/*/; do
        name=$(basename "$folder")
        mkdir -p "$KILN_TMP/seeds/$name"
        [ "$name" = blob ] ||
            cp "$(find "$folder" -type f -printf '%s %p\n' | sort -n | sed -n '1s/^[0-9]* //p')" "$KILN_TMP/seeds/$name"
    done
    ! "$replay" "$KILN_TMP/seeds" >"$KILN_TMP/said" 2>/dev/null || fail 'a harness without seeds passes'
    [ "$(grep -c 'has no seeds' "$KILN_TMP/said")" = 1 ] && grep -q "'blob' has no seeds" "$KILN_TMP/said" ||
        fail "who has none is not said: $(cat "$KILN_TMP/said")"
); result
