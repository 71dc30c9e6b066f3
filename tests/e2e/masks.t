#!/bin/bash
# Masks: black pixels count neither in metrics nor in colours. COLMAP's and nerfstudio's conventions find the same masks, a mask is
# a source like a photo, and without masks nothing changes: a bake of before masks has nothing to do.
. tests/e2e/lib.sh
command -v python3 >/dev/null || skip "no python3"
root=$PWD
export PYTHONPATH=$root/tests/e2e PYTHONDONTWRITEBYTECODE=1
cd "$KILN_TMP" || exit 1
json() { python3 -c 'import json, sys; d = json.load(open("out")); assert eval(sys.argv[1]), d' "$1" || fail "$1"; }
bake() { for stage in knn prune chunk; do kiln $stage "$1" >/dev/null || fail $stage; done; }
imp() { "$KILN_BIN/kiln-import" "$@"; } # --quiet leaves the notes out
view() { python3 -c 'import json, sys; print({v["name"]: v["psnr"] for v in json.load(open("out"))["views"]}[sys.argv[1]])' "$1"; }

python3 "$root/tests/e2e/ball.py" s 4 || fail ball
kiln import s first/m.db >/dev/null && bake first/m.db
kiln render first/m.db --background white -o drawn >/dev/null || fail drawn
cp drawn/cam?.png s/
# cam1's photo is spoilt in its left half, cam2's is as drawn
py masks

test_step 'without masks nothing is said of masks' && (
    must 0 imp s m/m.db
    ! grep -qi mask out err || fail "masks without masks: $(cat out)"
); result

bake m/m.db
must 0 kiln render m/m.db --background white --json
spoilt=$(view cam1)

test_case 'a spoilt photo measures badly' && (
    python3 -c "assert $spoilt < 15" || fail "cam1 spoilt: $spoilt"
); result

test_step 'a bake of before masks has nothing to do' && (
    py as_before "$root"
    must 0 kiln info m/m.db
    must 0 kiln verify m/m.db
    for stage in import knn prune chunk; do
        must 0 kiln $stage $([ $stage = import ] && echo s) m/m.db --json
        json 'd["status"] == "nothing to do"'
    done
    must 0 kiln render m/m.db --background white --json
    json 'd["status"] == "nothing to do"'
    must 0 kiln verify m/m.db
); result

mkdir s/masks
cp half.png s/masks/cam1.png.png

test_case '--list counts masks' && (
    must 0 imp s m/m.db --list
    grep -q 'uses     masks .*: 1 mask;' out || fail "list: $(cat out)"
); result

must 0 imp s m/m.db
bake m/m.db
must 0 kiln render m/m.db --background white --json
whole=$(view cam1)

test_case 'only the camera with a mask is drawn and measured again' && (
    json 'd["frames_drawn"] == 1' # the others have the key of before
    python3 -c "assert float('$whole') > 40" || fail "cam1 behind its mask: $whole"
    must 0 kiln render m/m.db --background white --json
    json 'd["status"] == "nothing to do"'
); result

test_case 'a mask of another content' && (
    cp black.png s/masks/cam1.png.png
    must 3 kiln render m/m.db --background white --force
    grep -q 'cam1.png.png.* changed since' err || fail "render says $(cat err)"
); result

test_case 'a mask of another size and the same shape' && (
    cp small.png s/masks/cam1.png.png
    must 0 imp s m/m.db
    grep -q "1 mask has another size than its photo" err || fail "no note: $(cat err)"
    must 0 kiln render m/m.db --background white --json
    [ "$(view cam1)" = "$whole" ] || fail "the resampled mask gives $(view cam1), not $whole"
); result

test_case 'a mask that fits no photo' && (
    cp wide.png s/masks/cam1.png.png
    must 0 imp s m/m.db
    grep -q "1 mask does not fit its photo and is left out; the first: .*cam1.png.png' is 96 x 16 pixels, its photo 96 x 64" err ||
        fail "no note: $(cat err)"
    must 0 kiln render m/m.db --background white --json
    [ "$(view cam1)" = "$spoilt" ] || fail "a mask that does not fit was used"
); result

test_case 'a mask that leaves nothing, and one that is gone after import' && (
    cp black.png s/masks/cam1.png.png
    cp half.png s/masks/cam2.png # without the photo's extension
    must 0 imp s m/m.db
    rm s/masks/cam2.png
    must 0 "$KILN_BIN/kiln-render" m/m.db --background white --json
    json 'd["photos_damaged"] == 2'
    grep -q "cam1.png.png' is black, so nothing is left to compare" err || fail "black: $(cat err)"
    grep -q "masks/cam2.png': No such file" err || fail "gone: $(cat err)"
    cp half.png s/masks/cam2.png
    must 0 kiln render m/m.db --background white --json
    json 'd["photos_damaged"] == 1'
); result

test_step 'nerfstudio: mask_path, of a photo in images_2 the mask in masks_2 first' && (
    py nerfstudio
    must 0 imp n n.db
    grep -q 'Gaussians, 1 camera$' err || fail "one camera: $(cat err)"
    bake n.db
    must 0 kiln render n.db --background white --json
    python3 -c "assert abs($(view cam1) - $whole) < 0.5" || fail "mask_path gives $(view cam1), not $whole"
); result

test_case 'a mask_path that leaves the folder, and one that is not there' && (
    sed -i 's|masks/m.png|../half.png|' n/transforms.json
    must 3 imp n n.db
    grep -q "the mask_path of frame 0.* is refused" err || fail "mask_path may leave: $(cat err)"
    sed -i 's|\.\./half.png|masks/no.png|' n/transforms.json
    must 0 imp n n.db
    grep -q "1 mask is named, but missing; the first is 'masks/no.png'" err || fail "missing: $(cat err)"
); result

test_case 'a folder masks_2 for photos of images_2, before masks' && (
    mkdir -p c/images_2 c/masks_2/sub c/masks && cp s/*.ply s/cameras.json c/ && cp s/cam1.png s/cam2.png c/images_2/
    cp half.png c/masks_2/cam1.png.png && cp half.png c/masks/cam1.png.png && cp small.png c/masks_2/cam2.png.png &&
        cp half.png c/masks/cam2.png.png
    must 0 imp c c.db
    [ "$(python3 -c "import sqlite3; print(*(r[0].split('/c/')[1] for r in sqlite3.connect('c.db').execute('SELECT path FROM photo_mask ORDER BY camera')))")" = \
        'masks_2/cam1.png.png masks/cam2.png.png' ] || fail 'another mask was taken'
); result
