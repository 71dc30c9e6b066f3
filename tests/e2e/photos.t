#!/bin/bash
# A photo that is damaged or gone costs its camera the metric and a sentence; the others are measured, and once it is
# mended the next run measures it. Nothing waits for a pipe.
. tests/e2e/lib.sh
command -v python3 >/dev/null || skip "no python3"
root=$PWD
export PYTHONPATH=$root/tests/e2e PYTHONDONTWRITEBYTECODE=1
cd "$KILN_TMP" || exit 1
json() { python3 -c 'import json, sys; d = json.load(open("out")); assert eval(sys.argv[1]), d' "$1" || fail "$1"; }
warnings() { grep -c 'warning: camera' err; }
render() { timeout 60 "$KILN_BIN/kiln-render" "$@"; }
measured='sorted(v["name"] for v in d["views"] if v["psnr"] is not None)'
noted='sorted(v["name"] for v in d["views"] if "note" in v)'

python3 "$root/tests/e2e/ball.py" s 8 || fail ball
kiln import s first/m.db >/dev/null && for stage in knn prune chunk; do kiln $stage first/m.db >/dev/null || fail $stage; done
kiln render first/m.db --background white -o drawn >/dev/null || fail drawn
for i in 0 1 2 3 4 5 6 7; do cp drawn/cam$i.png s/; done
cp "$root/tests/data/photos/ball.jpg" s/cam0.jpg && rm s/cam0.png
python3 -c 'import picture
picture.write_png("other.png", 96, 64, [(9, 9, 9)] * (96 * 64))
picture.write_png("small.png", 8, 8, [(9, 9, 9)] * 64)'
db=m/manifest.db
bake_to_tiles() {
    kiln import s $db >/dev/null || fail import
    for stage in knn prune chunk tiles; do kiln $stage $db >/dev/null || fail $stage; done
}

bake_to_tiles

test_step 'all is well' && (
    must 0 render $db --background white --json
    json "len($measured) == 8 and not $noted and d['photos_damaged'] == 0"
    [ "$(warnings)" = 0 ] || fail "$(cat err)"
    cp out whole.json
); result

test_step 'photos that are damaged or gone cost their cameras the metric and a sentence' && (
    rm -rf m && bake_to_tiles
    cp -r s saved
    head -c 1500 saved/cam1.png >s/cam1.png
    python3 - <<'P'
b = bytearray(open('s/cam0.jpg', 'rb').read())
b[len(b) // 3:len(b) // 2] = bytes(len(b) // 2 - len(b) // 3)
open('s/cam0.jpg', 'wb').write(b)
P
    rm s/cam2.png s/cam3.png s/cam4.png
    mkdir s/cam3.png
    mkfifo s/cam4.png
    cp small.png s/cam6.png
    touch s/cam5.png s/cam7.png
    must 0 render $db --background white --json
    json "$measured == ['cam5', 'cam7'] and $noted == ['cam%d' % i for i in (0, 1, 2, 3, 4, 6)] and d['photos_damaged'] == 6 and d['frames_drawn'] == 8"
    [ "$(warnings)" = 5 ] && grep -q 'more photos are damaged or missing: 1;' err || fail "warnings: $(cat err)"
    for word in 'cam0.*Corrupt JPEG data' "cam1.png' as PNG.*complete" "cam2.png': No such file" "cam3.png' is a directory" \
        "cam4.png' is not a regular"; do
        grep -q "$word" err || fail "no '$word' in: $(cat err)"
    done
    cp out damaged.json
); result

test_case 'pixels and the other metrics stay' && (
    py beside || fail 'pixels or the metric differ beside damaged photos'
); result

test_case 'notes of damaged photos' && (
    grep -q "cam6.png' has 8 x 8 pixels, but the camera 96 x 64" out || fail "notes: $(cat out)"
    must 0 kiln info $db
    grep -qx '6 photos are damaged or gone, their cameras are not measured' out || fail "info: $(cat out)"
    must 0 kiln info $db --json
    json 'd["counts"]["photos_damaged"] == 6 and sorted(p["camera"] for p in d["damaged_photos"]) == ["cam%d" % i for i in (0, 1, 2, 3, 4, 6)]'
    must 0 kiln verify $db
); result

test_case 'as it is: nothing to do' && (
    must 0 render $db --json
    json 'd["status"] == "nothing to do"'
); result

test_step 'once mended a photo is measured, and that one alone' && (
    cp saved/cam1.png s/cam1.png
    must 0 render $db --json
    json "$measured == ['cam1', 'cam5', 'cam7'] and d['frames_drawn'] == 1 and d['photos_damaged'] == 5"
    rmdir s/cam3.png && rm s/cam4.png && cp saved/* s/ 2>/dev/null
    must 0 render $db --json
    json "len($measured) == 8 and d['photos_damaged'] == 0"
    python3 -c 'import json
a, b = (json.load(open(f))["views"] for f in ("whole.json", "out"))
assert [(v["psnr"], v["ssim"]) for v in a] == [(v["psnr"], v["ssim"]) for v in b]' ||
        fail 'mended photos measure otherwise'
); result

test_case 'a whole photo that is another one is no damage' && (
    cp other.png s/cam1.png
    must 3 render $db --force
    grep -q 'changed since' err || fail "render says $(cat err)"
    cp saved/cam1.png s/cam1.png
); result

test_case 'damaged before import' && (
    head -c 1500 saved/cam1.png >s/cam1.png
    rm -rf m && bake_to_tiles
    must 0 render $db --background white --json
    json "$noted == ['cam1'] and d['photos_damaged'] == 1"
    cp saved/cam1.png s/cam1.png
    bake_to_tiles
    must 0 render $db --json
    json "len($measured) == 8"
); result
