#!/bin/bash
# Several formats in one run: each file is the one that its format gives alone, whatever came before it; each is remembered by
# itself; and nothing is written where one of them is refused.
. tests/e2e/lib.sh
cd "$KILN_TMP" || exit 1
scene s 700 2 40x24
bake s x.db --max 128
kiln lod x.db --levels 1 --coarsest 300 >/dev/null || fail lod
mkdir alone
formats=$("$KILN_BIN/kiln-export" --list-formats | awk '{ print $1 }')
for format in $formats; do
    to=alone/
    # a folder format alone takes -o itself
    case $format in chunks) to=alone/chunks ;; sog-folder) to=alone/sog ;; lod | 3dtiles) to=alone/$format ;; esac
    must 0 kiln export x.db --format "$format" -o $to --order baked
done

test_case 'ten formats at least are looked at' && (
    [ "$(wc -w <<<"$formats")" -ge 10 ] || fail "only these formats: $formats"
); result

forwards=$(paste -sd, <<<"$formats") backwards=$(tac <<<"$formats" | paste -sd,)
for how in "$forwards" "$backwards"; do
    for workers in 1 3; do
        test_case "all formats at once, ${how%%,*} first, $workers workers" && (
            rm -rf together; mkdir together
            must 0 kiln export x.db --format "$how" -o together/ --order baked --workers $workers
            diff -rq alone together || fail "$how: see above"
        ); result
    done
done
for first in splat glb; do
    for second in $formats; do
        [ $first != "$second" ] || continue

        test_case "$second after $first" && (
            rm -rf together; mkdir together
            must 0 kiln export x.db --format "$first,$second" -o together/ --order baked
            for file in together/*; do diff -rq "$file" "alone/${file#*/}" || fail "$first,$second: see above"; done
        ); result
    done
done

test_case 'a format that is added, or missing, is written alone' && (
    said() { "$KILN_BIN/kiln-export" x.db "$@" 2>&1 || fail "kiln-export $*: $?"; }
    said --format spz,splat >/dev/null
    stat -c '%Y %i' export/scene.spz >before
    out=$(said --format spz,splat,csv)
    [[ $out == *scene.csv* && $out != *scene.spz* && $out != *scene.splat* ]] || fail "not the added format alone was written: $out"
    [ "$(stat -c '%Y %i' export/scene.spz)" = "$(cat before)" ] || fail 'the file changed'
    out=$(said)
    [[ $out == *'nothing to do'* ]] || fail "$out"
    rm export/scene.splat
    out=$(said)
    [[ $out == *scene.splat* && $out != *scene.csv* ]] || fail "not the missing one alone: $out"
); result
