#!/bin/bash
# --report-loss: what a written file has lost is drawn and said before the file has its name; --min-psnr keeps a bad file away.
. tests/e2e/lib.sh
cd "$KILN_TMP" || exit 1
scene s 500 3 48x32
kiln import s a.db >/dev/null || fail 'import'
for stage in knn prune chunk; do kiln $stage a.db >/dev/null || fail $stage; done
said() { "$KILN_BIN/kiln-export" a.db "$@" 2>&1; }
out=$(said --report-loss 2 -o a.ply) || fail "$out"
[ "$(grep -c "'a.ply': camera '.*' equal" <<<"$out")" = 2 ] || fail "a PLY has lost something, or not two cameras were drawn: $out"
out=$(said --report-loss 9 -o a.splat) || fail "$out"
grep -q "'a.splat': camera '.*' [0-9.]* dB" <<<"$out" || fail "no dB of a .splat: $out"
# what the command says is what the file is worth: a copy of the file, imported and drawn, has the same dB
kiln import a.splat b.db --quiet --cameras s/cameras.json >/dev/null || fail 'import of what is written'
for stage in knn prune chunk; do kiln $stage b.db >/dev/null || fail $stage; done
name=$(sed -n "s/.*'a.splat': camera '\(.*\)' [0-9.]* dB/\1/p" <<<"$out" | head -n 1)
must 0 kiln render a.db --camera "$name" -o a.npy
must 0 kiln render b.db --camera "$name" -o b.npy
want=$(sed -n "s|.*'a.splat': camera '$name' \([0-9.]*\) dB|\1|p" <<<"$out")
have=$("$KILN_BIN/kiln-compare" a.npy b.npy --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["psnr"])') || fail 'compare'
python3 -c "import sys; sys.exit(abs($want - $have) > 0.5)" || fail "said $want dB of $name, drawn $have"
# cameras move along with what is written: they see the same
out=$(said --report-loss 9 -o m.splat --translate 3,-2,7 --rotate 20,90,0 --scale 3) || fail "$out"
moved=$(sed -n "s|.*'m.splat': camera '$name' \([0-9.]*\) dB|\1|p" <<<"$out")
python3 -c "import sys; sys.exit(abs($want - $moved) > 2)" || fail "said $want dB of $name, moved $moved"
# a floor that is not reached leaves no file, and a file that is there as it was
cp a.splat before
must 3 kiln export a.db -o a.splat --report-loss 1 --min-psnr 90
grep -q 'below --min-psnr 90' err || fail "$(cat err)"
cmp a.splat before || fail 'a refused export changed the file'
must 3 kiln export a.db -o c.splat --report-loss 1 --min-psnr 90
! ls | grep -q '^c.splat' || fail "left behind: $(ls)"
must 0 kiln export a.db -o c.splat --report-loss 1 --min-psnr 5
must 2 kiln export a.db --format chunks -o raw --report-loss 1
must 2 kiln export a.db -o d.splat --min-psnr 5
"$KILN_BIN/kiln-export" a.db --json --report-loss 3 -o a.splat 2>err | python3 -c 'import json, sys
psnr = json.load(sys.stdin)["psnr"]; sys.exit(not (len(psnr) == 3 and all(5 < v < 90 for v in psnr.values())))' || fail 'the JSON has no dB'
# memory is asked for before pictures are made: too large ones are refused with what would do
cp a.db large.db
python3 -c 'import sqlite3; sqlite3.connect("large.db", isolation_level=None).execute("UPDATE camera SET width = 60000, height = 60000")' || fail 'a large camera'
for format in ply sog; do
    must 5 kiln export large.db --ram 300M --report-loss 1 -o large.$format
    grep -q '^kiln-export: .*the pictures of --report-loss needs .*; the least that works is --ram [0-9]*M$' err || fail "a large camera: $(cat err)"
    ! ls | grep "^large.$format" || fail "left behind: $(ls)"
done
