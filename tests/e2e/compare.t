#!/bin/bash
# kiln-compare: equal pictures, a part against its cut-out, and what does not fit, with the exit code that belongs to it.
. tests/e2e/lib.sh
scene "$KILN_TMP/s" 2000 2 200x100
bake "$KILN_TMP/s" "$KILN_TMP/x.db"
kiln render "$KILN_TMP/x.db" --camera '#0' -o "$KILN_TMP/a.npy" >/dev/null || fail "render a"
kiln render "$KILN_TMP/x.db" --camera '#0' -o "$KILN_TMP/a.png" >/dev/null || fail "render a as PNG"
kiln render "$KILN_TMP/x.db" --camera '#1' -o "$KILN_TMP/b.npy" >/dev/null || fail "render b"
value() { grep -o "\"$1\": [^,]*" "$KILN_TMP/out" | head -1 | sed 's/.*: //'; }

test_case 'equal pictures' && (
    must 0 kiln compare "$KILN_TMP/a.npy" "$KILN_TMP/a.npy" --json
    [ "$(value psnr)" = null ] && [ "$(value mse)" = 0.0 ] && [ "$(value ssim_same)" = 1.0 ] ||
        fail "equal pictures differ: $(cat "$KILN_TMP/out")"
); result

test_case 'eight bits cost about 59 dB' && (
    must 0 kiln compare "$KILN_TMP/a.npy" "$KILN_TMP/a.png" --json
    awk -v v="$(value psnr)" 'BEGIN { exit !(v > 55 && v < 65) }' || fail "8 bits give $(value psnr) dB, 59 are expected"
); result

must 0 kiln compare "$KILN_TMP/a.npy" "$KILN_TMP/b.npy" --json
whole=$(value psnr)

test_case 'two views, and the whole as a rectangle' && (
    awk -v v="$whole" 'BEGIN { exit !(v > 1 && v < 50) }' || fail "two views give $whole dB"
    must 0 kiln compare "$KILN_TMP/a.npy" "$KILN_TMP/b.npy" --rect 0,0,200,100 --json
    [ "$(value psnr)" = "$whole" ] || fail "the whole as a rectangle gives $(value psnr), not $whole"
); result

test_case 'a rectangle is another comparison' && (
    must 0 kiln compare "$KILN_TMP/a.npy" "$KILN_TMP/b.npy" --rect 150,50,50,50 --json
    [ "$(value width)" = 50 ] && [ "$(value psnr)" != "$whole" ] || fail "the rectangle is not used"
); result

test_step 'what does not fit has its exit code' && (
    must 2 kiln compare "$KILN_TMP/a.npy" "$KILN_TMP/b.npy" --rect 151,0,50,50
    must 2 kiln compare "$KILN_TMP/a.npy" "$KILN_TMP/b.npy" --rect 1,2,3
    must 2 kiln compare "$KILN_TMP/a.npy"
    must 3 kiln compare "$KILN_TMP/a.npy" "$KILN_TMP/nothing.png"
    head -c 1000 "$KILN_TMP/a.npy" >"$KILN_TMP/cut.npy"
    must 3 kiln compare "$KILN_TMP/a.npy" "$KILN_TMP/cut.npy"
); result

d=$KILN_TMP/d
mkdir -p "$d/a/in" "$d/b/in" "$d/c"
cp "$KILN_TMP/a.png" "$d/a/same.png"; cp "$KILN_TMP/a.png" "$d/b/same.png"
cp "$KILN_TMP/a.npy" "$d/a/in/near.npy"; cp "$KILN_TMP/a.png" "$d/b/in/near.PNG" # another suffix, in a folder
cp "$KILN_TMP/a.npy" "$d/a/far.npy"; cp "$KILN_TMP/b.npy" "$d/b/far.npy"; cp "$KILN_TMP/a.png" "$d/b/far.png" # the same suffix wins
cp "$KILN_TMP/a.png" "$d/a/mine.png"; cp "$KILN_TMP/a.png" "$d/b/far.x.png"; echo text >"$d/a/notes.txt"

test_case 'two folders: pairs from the worst on, and what is in one alone' && (
    must 0 kiln compare "$d/a" "$d/b/"
    awk 'NR > 1 { print /mean of/ ? $5 : $NF }' "$KILN_TMP/out" >"$KILN_TMP/last"
    printf '%s\n' far.npy in/near.PNG same.png 3, mine.png far.png far.x.png >"$KILN_TMP/want"
    diff "$KILN_TMP/want" "$KILN_TMP/last" || fail "the order, worst first: $(cat "$KILN_TMP/out")"
    grep -q "^  *equal  *1.00000  same.png$" "$KILN_TMP/out" || fail "equal pictures: $(cat "$KILN_TMP/out")"
    grep -q "mean of 3, 1 equal, which psnr leaves out$" "$KILN_TMP/out" || fail "no mean: $(cat "$KILN_TMP/out")"
    grep -qx "only in $d/a: mine.png" "$KILN_TMP/out" && grep -qx "only in $d/b/: far.png" "$KILN_TMP/out" ||
        fail "what is missing: $(cat "$KILN_TMP/out")"
); result

test_case 'two folders as JSON' && (
    must 0 kiln compare "$d/a" "$d/b" --json
    py document "$KILN_TMP/out" "$whole" || fail "the document: $(cat "$KILN_TMP/out")"
); result

test_case 'two folders: a rectangle, and equal ones' && (
    must 0 kiln compare "$d/a" "$d/b" --rect 0,0,50,50
    must 0 kiln compare "$d/b" "$d/b"
    grep -q "1.00000  mean of 5, 5 equal$" "$KILN_TMP/out" || fail "equal folders: $(cat "$KILN_TMP/out")"
); result

test_case 'a picture that cannot be compared does not keep the others' && (
    cp "$KILN_TMP/cut.npy" "$d/b/in/near.PNG"
    must 3 kiln compare "$d/a" "$d/b"
    grep -q '^kiln-compare: 1 of 3 pictures could not be compared$' "$KILN_TMP/err" && grep -q 'mean of 2' "$KILN_TMP/out" ||
        fail "$(cat "$KILN_TMP/out" "$KILN_TMP/err")"
    must 3 kiln compare "$d/a" "$d/b" --json
    python3 -c 'import json, sys
d = json.load(open(sys.argv[1]))
assert d["status"] == "failed" and len(d["failed"]) == 1 and len(d["pictures"]) == 2' "$KILN_TMP/out" ||
        fail "the document of a failure: $(cat "$KILN_TMP/out")"
    must 3 kiln compare "$d/a" "$d/c"
    must 2 kiln compare "$d/a" "$KILN_TMP/a.png"
); result

test_case 'what is missing is named, whatever the other one is' && (
    for pair in "$d/b $KILN_TMP/nope" "$KILN_TMP/nope $d/b" "$KILN_TMP/nope $KILN_TMP/a.png"; do
        must 3 kiln compare $pair
        grep -q "'$KILN_TMP/nope': No such file" "$KILN_TMP/err" || fail "kiln-compare $pair says: $(cat "$KILN_TMP/err")"
    done
); result
