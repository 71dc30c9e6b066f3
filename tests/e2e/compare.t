#!/bin/bash
# kiln-compare: equal pictures, a part against its cut-out, and what does not fit, with the exit code that belongs to it.
. tests/e2e/lib.sh
scene "$KILN_TMP/s" 2000 2 200x100
bake "$KILN_TMP/s" "$KILN_TMP/x.db"
kiln render "$KILN_TMP/x.db" --camera '#0' -o "$KILN_TMP/a.npy" >/dev/null || fail "render a"
kiln render "$KILN_TMP/x.db" --camera '#0' -o "$KILN_TMP/a.png" >/dev/null || fail "render a as PNG"
kiln render "$KILN_TMP/x.db" --camera '#1' -o "$KILN_TMP/b.npy" >/dev/null || fail "render b"
value() { grep -o "\"$1\": [^,]*" "$KILN_TMP/out" | head -1 | sed 's/.*: //'; }

must 0 kiln compare "$KILN_TMP/a.npy" "$KILN_TMP/a.npy" --json
[ "$(value psnr)" = null ] && [ "$(value mse)" = 0.0 ] && [ "$(value ssim_same)" = 1.0 ] || fail "equal pictures differ: $(cat "$KILN_TMP/out")"
must 0 kiln compare "$KILN_TMP/a.npy" "$KILN_TMP/a.png" --json
awk -v v="$(value psnr)" 'BEGIN { exit !(v > 55 && v < 65) }' || fail "8 bits give $(value psnr) dB, 59 are expected"
must 0 kiln compare "$KILN_TMP/a.npy" "$KILN_TMP/b.npy" --json
whole=$(value psnr)
awk -v v="$whole" 'BEGIN { exit !(v > 1 && v < 50) }' || fail "two views give $whole dB"
must 0 kiln compare "$KILN_TMP/a.npy" "$KILN_TMP/b.npy" --rect 0,0,200,100 --json
[ "$(value psnr)" = "$whole" ] || fail "the whole as a rectangle gives $(value psnr), not $whole"
must 0 kiln compare "$KILN_TMP/a.npy" "$KILN_TMP/b.npy" --rect 150,50,50,50 --json
[ "$(value width)" = 50 ] && [ "$(value psnr)" != "$whole" ] || fail "the rectangle is not used"

must 2 kiln compare "$KILN_TMP/a.npy" "$KILN_TMP/b.npy" --rect 151,0,50,50
must 2 kiln compare "$KILN_TMP/a.npy" "$KILN_TMP/b.npy" --rect 1,2,3
must 2 kiln compare "$KILN_TMP/a.npy"
must 3 kiln compare "$KILN_TMP/a.npy" "$KILN_TMP/nothing.png"
head -c 1000 "$KILN_TMP/a.npy" >"$KILN_TMP/cut.npy"
must 3 kiln compare "$KILN_TMP/a.npy" "$KILN_TMP/cut.npy"
