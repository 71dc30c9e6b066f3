#!/bin/bash
# --report-loss: what a written file has lost is drawn and said before the file has its name; --min-psnr keeps a bad file away.
. tests/e2e/lib.sh
cd "$KILN_TMP" || exit 1
scene s 500 3 48x32
kiln import s a.db >/dev/null || fail 'import'
for stage in knn prune chunk; do kiln $stage a.db >/dev/null || fail $stage; done
said() { "$KILN_BIN/kiln-export" a.db "$@" 2>&1; }

test_case 'a PLY loses nothing' && (
    out=$(said --report-loss 2 -o a.ply) || fail "$out"
    [ "$(grep -c "'a.ply': camera '.*' equal" <<<"$out")" = 2 ] ||
        fail "a PLY has lost something, or not two cameras were drawn: $out"
); result

out=$(said --report-loss 9 -o a.splat) || fail "$out"
name=$(sed -n "s/.*'a.splat': camera '\(.*\)' [0-9.]* dB/\1/p" <<<"$out" | head -n 1)
want=$(sed -n "s|.*'a.splat': camera '$name' \([0-9.]*\) dB|\1|p" <<<"$out")

test_case 'a .splat loses something' && (
    grep -q "'a.splat': camera '.*' [0-9.]* dB" <<<"$out" || fail "no dB of a .splat: $out"
); result

test_case 'what is said is what the file is worth' && (
    kiln import a.splat b.db --quiet --cameras s/cameras.json >/dev/null || fail 'import of what is written'
    for stage in knn prune chunk; do kiln $stage b.db >/dev/null || fail $stage; done
    must 0 kiln render a.db --camera "$name" -o a.npy
    must 0 kiln render b.db --camera "$name" -o b.npy
    have=$("$KILN_BIN/kiln-compare" a.npy b.npy --json | python3 -c 'import json, sys
print(json.load(sys.stdin)["psnr"])') || fail 'compare'
    python3 -c "import sys; sys.exit(abs($want - $have) > 0.5)" || fail "said $want dB of $name, drawn $have"
); result

test_case 'cameras move along with what is written' && (
    out=$(said --report-loss 9 -o m.splat --translate 3,-2,7 --rotate 20,90,0 --scale 3) || fail "$out"
    moved=$(sed -n "s|.*'m.splat': camera '$name' \([0-9.]*\) dB|\1|p" <<<"$out")
    python3 -c "import sys; sys.exit(abs($want - $moved) > 2)" || fail "said $want dB of $name, moved $moved"
); result

# a scene with an origin, whether positions are written with it or without: as the same scene at 0
py far || fail 'cannot move the scene'
kiln import far.ply far.db --cameras far.json >/dev/null || fail 'import of the far scene'
for stage in knn prune chunk; do kiln $stage far.db >/dev/null || fail "$stage of the far scene"; done
# formats of levels are read as a viewer has them nearby: the finest of each node
for db in a far; do kiln lod $db.db --coarsest 60 >/dev/null || fail "levels of $db"; done
for format in rad lod 3dtiles; do
    test_case "$format has the loss of its codes" && (
        out=$("$KILN_BIN/kiln-export" a.db --json --report-loss 3 --format $format -o "levels.$format" 2>err) ||
            fail "$format: $(cat err)"
        python3 -c 'import json, sys
v = json.loads(sys.argv[1])["psnr"]
assert len(v) == 3 and all(x is not None and 30 < x < 99 for x in v.values()), v' "$out" || fail "$format has another loss than its codes: $out"
    ); result
done

test_case 'a tileset below --min-psnr is not there' && (
    must 3 kiln export a.db --format 3dtiles --report-loss 1 --min-psnr 99 -o bad.tiles
    [ ! -e bad.tiles ] || fail 'a tileset below --min-psnr is there'
); result

test_case 'CSV alone cannot be measured' && (
    must 2 kiln export a.db --format csv --report-loss 1
); result

for format in spz spz4 glb 3dtiles; do
    test_case "$format of a scene with an origin has the loss of the same at 0" && (
        suffix=${format%4}
        [ $format != 3dtiles ] || suffix=tiles/
        for db in a far; do
            "$KILN_BIN/kiln-export" $db.db --json --report-loss 3 --format $format -w -o $db.$suffix >$db.json 2>err ||
                fail "$format of $db: $(cat err)"
        done
        python3 - <<'P' || fail "$format of a scene with an origin has another loss: $(cat a.json far.json)"
import json
a, far = (json.load(open(f))['psnr'] for f in ('a.json', 'far.json'))
assert len(a) == 3 and all(far[k] is None or a[k] is not None and abs(a[k] - far[k]) < 3 or far[k] > 60 for k in a), (a, far)
P
    ); result
done
# what readers make of positions of such a scene is said: float32, or relative to what
for format in splat compressed-ply ksplat ksplat0 ksplat2 sog sog-folder glb csv spz spz4; do
    test_case "what readers make of far positions is said: $format" && (
        must 0 "$KILN_BIN/kiln-export" far.db --format $format -o "said.$format/"
        case $format in
        glb | csv | spz*) ! grep -q 'float32' err || fail "$format holds more than float32: $(cat err)" ;;
        *) grep -q 'positions as float32, whose steps are up to 0.5 where' err || fail "$format: $(cat err)" ;;
        esac
        must 0 "$KILN_BIN/kiln-export" far.db --format $format --keep-origin -w -o "said.$format/"
        [ "$(grep -c "positions are relative to the scene's origin 4999999 " err)" = 1 ] || fail "$format --keep-origin: $(cat err)"
    ); result
done

test_case 'points are not drawn, which is said before anything is done' && (
    ascii_ply 'float x float y float z' '1 2 3' '4 5 6' >points.ply
    kiln import points.ply points.db --cameras s/cameras.json >/dev/null || fail 'import of points'
    must 2 kiln export points.db --layer source --report-loss 1 -o points-out.ply
    grep -q 'points' err && [ ! -e points-out.ply ] || fail "$(cat err)"
); result

test_case 'a floor that is not reached leaves no file, and one that is there as it was' && (
    cp a.splat before
    must 3 kiln export a.db -w -o a.splat --report-loss 1 --min-psnr 90
    grep -q 'below --min-psnr 90' err || fail "$(cat err)"
    cmp a.splat before || fail 'a refused export changed the file'
    must 3 kiln export a.db -o c.splat --report-loss 1 --min-psnr 90
    ! ls | grep -q '^c.splat' || fail "left behind: $(ls)"
    must 0 kiln export a.db -o c.splat --report-loss 1 --min-psnr 5
    must 2 kiln export a.db --format chunks -o raw --report-loss 1
); result

test_case 'what nothing here reads is left out beside what is read' && (
    must 2 "$KILN_BIN/kiln-export" a.db --format csv -o alone.csv --report-loss 1
    grep -q 'SplatKiln cannot read csv; leave out --report-loss, or add another format' err && [ ! -e alone.csv ] ||
        fail "csv alone: $(cat err)"
    must 2 "$KILN_BIN/kiln-export" a.db --format csv,chunks -o neither/ --report-loss 1
    grep -q 'SplatKiln cannot read csv, chunks;' err && [ ! -e neither ] || fail "csv and chunks: $(cat err)"
    must 0 "$KILN_BIN/kiln-export" a.db --format csv,splat,ply -o several/ --report-loss 1
    [ "$(grep -c 'warning: --report-loss leaves out csv, which SplatKiln cannot read$' err)" = 1 ] ||
        fail "csv is left out in silence: $(cat err)"
    [ "$(grep -cE "several/scene.(splat|ply)': camera '.*' (equal|[0-9.]+ dB)$" err)" = 2 ] ||
        fail "the others are not measured: $(cat err)"
    [ -s several/scene.csv ] && [ -s several/scene.splat ] && [ -s several/scene.ply ] || fail "not all are written: $(ls several)"
    must 3 kiln export a.db --format csv,splat -o below/ --report-loss 1 --min-psnr 90
); result

test_case '--min-psnr needs --report-loss' && (
    must 2 kiln export a.db -o d.splat --min-psnr 5
); result

test_case '--json has the loss' && (
    "$KILN_BIN/kiln-export" a.db --json --report-loss 3 -w -o a.splat 2>err | python3 -c 'import json, sys
psnr = json.load(sys.stdin)["psnr"]; sys.exit(not (len(psnr) == 3 and all(5 < v < 90 for v in psnr.values())))' || fail 'the JSON has no dB'
); result

test_case 'memory for the pictures is asked for before anything is written' && (
    cp a.db large.db
    python3 -c 'import sqlite3
sqlite3.connect("large.db", isolation_level=None).execute("UPDATE camera SET width = 12000, height = 12000")' ||
        fail 'a large camera'
    for format in ply sog; do
        must 5 kiln export large.db --ram 300M --report-loss 1 -o large.$format
        grep -q "^kiln-export: 'measuring the loss' needs .*; the least that works is --ram [0-9]*M$" err ||
            fail "a large camera: $(cat err)"
        ! ls | grep "^large.$format" || fail "left behind: $(ls)"
    done
); result
