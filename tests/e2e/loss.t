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
# a scene with an origin, whether positions are written with it or without: as the same scene at 0
python3 - <<'P' || fail 'cannot move the scene'
import json, struct
by = (5000000.5, -4000000, 0)
cameras = json.load(open('s/cameras.json'))
for c in cameras:
    r = c['R']
    c['t'] = [t - sum(r[3 * i + k] * by[k] for k in range(3)) for i, t in enumerate(c['t'])]
json.dump(cameras, open('far.json', 'w'))
b = open('s/scene.ply', 'rb').read()
at = b.index(b'end_header\n') + 11
head = b[:at]
for name in (b'x', b'y', b'z'): head = head.replace(b'property float %s\n' % name, b'property double %s\n' % name)
n = head.count(b'property')
with open('far.ply', 'wb') as f:
    f.write(head)
    for row in struct.iter_unpack('<%df' % n, b[at:]):
        f.write(struct.pack('<3d%df' % (n - 3), *(v + o for v, o in zip(row, by)), *row[3:]))
P
kiln import far.ply far.db --cameras far.json >/dev/null || fail 'import of the far scene'
for stage in knn prune chunk; do kiln $stage far.db >/dev/null || fail "$stage of the far scene"; done
# formats of levels are read as a viewer has them nearby: the finest of each node
for db in a far; do kiln lod $db.db --coarsest 60 >/dev/null || fail "levels of $db"; done
for format in rad lod 3dtiles; do
    out=$("$KILN_BIN/kiln-export" a.db --json --report-loss 3 --format $format -o "levels.$format" 2>err) || fail "$format: $(cat err)"
    python3 -c 'import json, sys
v = json.loads(sys.argv[1])["psnr"]
assert len(v) == 3 and all(x is not None and 30 < x < 99 for x in v.values()), v' "$out" || fail "$format has another loss than its codes: $out"
done
must 3 kiln export a.db --format 3dtiles --report-loss 1 --min-psnr 99 -o bad.tiles
[ ! -e bad.tiles ] || fail 'a tileset below --min-psnr is there'
must 2 kiln export a.db --format csv --report-loss 1
for format in spz spz4 glb 3dtiles; do
    suffix=${format%4}
    [ $format != 3dtiles ] || suffix=tiles/
    for db in a far; do
        "$KILN_BIN/kiln-export" $db.db --json --report-loss 3 --format $format -w -o $db.$suffix >$db.json 2>err || fail "$format of $db: $(cat err)"
    done
    python3 - <<'P' || fail "$format of a scene with an origin has another loss: $(cat a.json far.json)"
import json
a, far = (json.load(open(f))['psnr'] for f in ('a.json', 'far.json'))
assert len(a) == 3 and all(far[k] is None or a[k] is not None and abs(a[k] - far[k]) < 3 or far[k] > 60 for k in a), (a, far)
P
done
# what readers make of positions of such a scene is said: float32, or relative to what
for format in splat compressed-ply ksplat ksplat0 ksplat2 sog sog-folder glb csv spz spz4; do
    must 0 "$KILN_BIN/kiln-export" far.db --format $format -o "said.$format/"
    case $format in
    glb | csv | spz*) ! grep -q 'float32' err || fail "$format holds more than float32: $(cat err)" ;;
    *) grep -q 'float32 to readers, of which neighbours are up to 0.5 apart' err || fail "$format: $(cat err)" ;;
    esac
    must 0 "$KILN_BIN/kiln-export" far.db --format $format --keep-origin -w -o "said.$format/"
    [ "$(grep -c "positions are relative to the scene's origin 4999999 " err)" = 1 ] || fail "$format --keep-origin: $(cat err)"
done
# points are not drawn, which is said before anything is done
printf 'ply\nformat ascii 1.0\nelement vertex 2\nproperty float x\nproperty float y\nproperty float z\nend_header\n1 2 3\n4 5 6\n' >points.ply
kiln import points.ply points.db --cameras s/cameras.json >/dev/null || fail 'import of points'
must 2 kiln export points.db --layer source --report-loss 1 -o points-out.ply
grep -q 'points' err && [ ! -e points-out.ply ] || fail "$(cat err)"
# a floor that is not reached leaves no file, and a file that is there as it was
cp a.splat before
must 3 kiln export a.db -w -o a.splat --report-loss 1 --min-psnr 90
grep -q 'below --min-psnr 90' err || fail "$(cat err)"
cmp a.splat before || fail 'a refused export changed the file'
must 3 kiln export a.db -o c.splat --report-loss 1 --min-psnr 90
! ls | grep -q '^c.splat' || fail "left behind: $(ls)"
must 0 kiln export a.db -o c.splat --report-loss 1 --min-psnr 5
must 2 kiln export a.db --format chunks -o raw --report-loss 1
# what nothing here reads is left out beside what is read, and alone it is refused before anything is written
must 2 "$KILN_BIN/kiln-export" a.db --format csv -o alone.csv --report-loss 1
grep -q 'nothing here reads csv; leave --report-loss out, or add another format' err && [ ! -e alone.csv ] || fail "csv alone: $(cat err)"
must 2 "$KILN_BIN/kiln-export" a.db --format csv,chunks -o neither/ --report-loss 1
grep -q 'nothing here reads csv, chunks;' err && [ ! -e neither ] || fail "csv and chunks: $(cat err)"
must 0 "$KILN_BIN/kiln-export" a.db --format csv,splat,ply -o several/ --report-loss 1
[ "$(grep -c 'warning: --report-loss leaves out csv, which nothing here reads$' err)" = 1 ] || fail "csv is left out in silence: $(cat err)"
[ "$(grep -cE "several/scene.(splat|ply)': camera '.*' (equal|[0-9.]+ dB)$" err)" = 2 ] || fail "the others are not measured: $(cat err)"
[ -s several/scene.csv ] && [ -s several/scene.splat ] && [ -s several/scene.ply ] || fail "not all are written: $(ls several)"
must 3 kiln export a.db --format csv,splat -o below/ --report-loss 1 --min-psnr 90
must 2 kiln export a.db -o d.splat --min-psnr 5
"$KILN_BIN/kiln-export" a.db --json --report-loss 3 -w -o a.splat 2>err | python3 -c 'import json, sys
psnr = json.load(sys.stdin)["psnr"]; sys.exit(not (len(psnr) == 3 and all(5 < v < 90 for v in psnr.values())))' || fail 'the JSON has no dB'
# memory is asked for before anything is written: too large pictures are refused with what would do
cp a.db large.db
python3 -c 'import sqlite3; sqlite3.connect("large.db", isolation_level=None).execute("UPDATE camera SET width = 12000, height = 12000")' || fail 'a large camera'
for format in ply sog; do
    must 5 kiln export large.db --ram 300M --report-loss 1 -o large.$format
    grep -q "^kiln-export: 'measuring the loss' needs .*; the least that works is --ram [0-9]*M$" err || fail "a large camera: $(cat err)"
    ! ls | grep "^large.$format" || fail "left behind: $(ls)"
done
