#!/bin/bash
# Masks: black pixels count neither in metrics nor in colours. COLMAP's and nerfstudio's conventions find the same masks, a mask is a source
# like a photo, and without masks nothing changes: a bake of before masks has nothing to do.
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
python3 - <<'P'
import picture
w, h, pixels = picture.read_png('s/cam1.png')
to8 = lambda p: tuple(round(255 * v) for v in p[:3])
picture.write_png('s/cam1.png', w, h, [(255, 0, 255) if i % w < w // 2 else to8(p) for i, p in enumerate(pixels)])
half = [(0, 0, 0) if i % w < w // 2 else (255, 255, 255) for i in range(w * h)]
picture.write_png('half.png', w, h, half)
picture.write_png('small.png', w // 2, h // 2, [(0, 0, 0) if i % (w // 2) < w // 4 else (1, 0, 0) for i in range(w * h // 4)])
picture.write_png('black.png', w, h, [(0, 0, 0)] * (w * h))
picture.write_png('wide.png', w, h // 4, [(255, 255, 255)] * (w * (h // 4)))
P

# without masks; made as a program did that knew none
must 0 imp s m/m.db
grep -qi mask out err && fail "masks without masks: $(cat out)"
bake m/m.db
must 0 kiln render m/m.db --background white --json
spoilt=$(view cam1)
python3 -c "assert $spoilt < 15" || fail "cam1 spoilt: $spoilt"
python3 - "$root" <<'P'
import sqlite3, sys
d = sqlite3.connect('m/m.db')
first = open(sys.argv[1] + '/schema/manifest.sql').read().split('\n-- VERSION 2')[0] # schema version 1
view = first[first.index('CREATE VIEW digest_line'):first.index('-- LATER TABLES')]
d.executescript('DROP TABLE photo_mask; DROP TABLE level_error; DROP TABLE level_origin; DROP VIEW digest_line; PRAGMA user_version = 1;' + view)
d.commit()
P
must 0 kiln info m/m.db
must 0 kiln verify m/m.db
for stage in import knn prune chunk; do
    must 0 kiln $stage $([ $stage = import ] && echo s) m/m.db --json
    json 'd["status"] == "nothing to do"'
done
must 0 kiln render m/m.db --background white --json
json 'd["status"] == "nothing to do"'
must 0 kiln verify m/m.db

# COLMAP's names: beside the photo, by its name and .png
mkdir s/masks
cp half.png s/masks/cam1.png.png
must 0 imp s m/m.db --list
grep -q 'uses     masks .*: 1 mask;' out || fail "list: $(cat out)"
must 0 imp s m/m.db
bake m/m.db
must 0 kiln render m/m.db --background white --json
json 'd["frames_drawn"] == 1' # the others have the key of before
whole=$(view cam1)
python3 -c "assert float('$whole') > 40" || fail "cam1 behind its mask: $whole"
must 0 kiln render m/m.db --background white --json
json 'd["status"] == "nothing to do"'

# another content, another size of the same shape, and one that fits no photo
cp black.png s/masks/cam1.png.png
must 3 kiln render m/m.db --background white --force
grep -q 'cam1.png.png.* changed since' err || fail "render says $(cat err)"
cp small.png s/masks/cam1.png.png
must 0 imp s m/m.db
grep -q "1 mask is not of its photo's size" err || fail "no note: $(cat err)"
must 0 kiln render m/m.db --background white --json
[ "$(view cam1)" = "$whole" ] || fail "the resampled mask gives $(view cam1), not $whole"
cp wide.png s/masks/cam1.png.png
must 0 imp s m/m.db
grep -q "1 mask does not fit its photo and is left out; the first: .*cam1.png.png' is 96 x 16 pixels, its photo 96 x 64" err || fail "no note: $(cat err)"
must 0 kiln render m/m.db --background white --json
[ "$(view cam1)" = "$spoilt" ] || fail "a mask that does not fit was used"

# one that leaves nothing, and one that is gone after import: no metric, and a sentence
cp black.png s/masks/cam1.png.png
cp half.png s/masks/cam2.png # without the photo's extension
must 0 imp s m/m.db
rm s/masks/cam2.png
must 0 "$KILN_BIN/kiln-render" m/m.db --background white --json
json 'd["photos_damaged"] == 2'
grep -q "cam1.png.png' is black: it leaves nothing to compare" err || fail "black: $(cat err)"
grep -q "masks/cam2.png': No such file" err || fail "gone: $(cat err)"
cp half.png s/masks/cam2.png
must 0 kiln render m/m.db --background white --json
json 'd["photos_damaged"] == 1'

# nerfstudio: mask_path; of a photo in images_2 the mask in masks_2 first
python3 - <<'P'
import json, os, shutil
cams = json.load(open('s/cameras.json'))
os.makedirs('n/images_2'), os.makedirs('n/masks_2'), os.makedirs('n/masks')
shutil.copy('s/cam1.png', 'n/images_2/cam1.png')
shutil.copy('half.png', 'n/masks_2/m.png')
shutil.copy('black.png', 'n/masks/m.png')
shutil.copy([f for f in os.listdir('s') if f.endswith('.ply')][0] if os.path.exists('x') else 's/' + [f for f in os.listdir('s') if f.endswith('.ply')][0], 'n/scene.ply')
c = next(c for c in cams if c['name'] == 'cam1')
R, t = c['R'], c['t']
R = [R[3 * i:3 * i + 3] for i in range(3)] if not isinstance(R[0], list) else R
centre = [-sum(R[k][i] * t[k] for k in range(3)) for i in range(3)]
m = [[R[0][i], -R[1][i], -R[2][i], centre[i]] for i in range(3)] + [[0, 0, 0, 1]]
json.dump({'fl_x': 2 * c['fx'], 'fl_y': 2 * c['fy'], 'cx': 2 * c['cx'], 'cy': 2 * c['cy'], 'w': 2 * c['width'], 'h': 2 * c['height'],
           'frames': [{'file_path': 'images/cam1.png', 'mask_path': 'masks/m.png', 'transform_matrix': m}]}, open('n/transforms.json', 'w'))
P
must 0 imp n n.db
grep -q 'Gaussians, 1 camera$' err || fail "one camera: $(cat err)"
bake n.db
must 0 kiln render n.db --background white --json
python3 -c "assert abs($(view cam1) - $whole) < 0.5" || fail "mask_path gives $(view cam1), not $whole"
sed -i 's|masks/m.png|../half.png|' n/transforms.json
must 3 imp n n.db
grep -q "the mask_path of frame 0.* is refused" err || fail "mask_path may leave: $(cat err)"
sed -i 's|\.\./half.png|masks/no.png|' n/transforms.json
must 0 imp n n.db
grep -q "1 mask is named and not there; the first: 'masks/no.png'" err || fail "missing: $(cat err)"

# a folder masks_2 for photos of images_2, before masks; the photo's own size before another
mkdir -p c/images_2 c/masks_2/sub c/masks && cp s/*.ply s/cameras.json c/ && cp s/cam1.png s/cam2.png c/images_2/
cp half.png c/masks_2/cam1.png.png && cp half.png c/masks/cam1.png.png && cp small.png c/masks_2/cam2.png.png && cp half.png c/masks/cam2.png.png
must 0 imp c c.db
[ "$(python3 -c "import sqlite3; print(*(r[0].split('/c/')[1] for r in sqlite3.connect('c.db').execute('SELECT path FROM photo_mask ORDER BY camera')))")" = \
    'masks_2/cam1.png.png masks/cam2.png.png' ] || fail 'another mask was taken'
