#!/bin/bash
# Where photos are found and how they are taken: --photos, the training data of cfg_args, images_N of odd sizes, EXIF orientations, 16-bit
# and grey PNGs, and the names of all that are missing.
. tests/e2e/lib.sh
command -v python3 >/dev/null || skip "no python3"
root=$PWD
export PYTHONPATH=$root/tests/e2e PYTHONDONTWRITEBYTECODE=1
cd "$KILN_TMP" || exit 1
json() { python3 -c 'import json, sys; d = json.load(open("out")); assert eval(sys.argv[1]), d' "$1" || fail "$1"; }
imp() { "$KILN_BIN/kiln-import" "$@"; } # --quiet leaves the notes out
bake() { for stage in knn prune chunk; do kiln $stage "$1" >/dev/null || fail $stage; done; }
view() { python3 -c 'import json, sys; print({v["name"]: v["psnr"] for v in json.load(open("out"))["views"]}[sys.argv[1]])' "$1"; }
sql() { python3 -c 'import sqlite3, sys; print(*sqlite3.connect(sys.argv[1]).execute(sys.argv[2]).fetchall(), sep="\n")' "$@"; }

python3 "$root/tests/e2e/ball.py" s 4 || fail ball
kiln import s first/m.db >/dev/null && bake first/m.db
kiln render first/m.db --background white -o drawn >/dev/null && kiln render first/m.db --background white --format png16 -o deep >/dev/null || fail drawn
mkdir far && cp drawn/cam?.png far/ && cp deep/cam1.png far/cam1.png
cat >put.py <<'P'
import picture, struct, sys, zlib
def chunk(kind, body): return struct.pack('>I', len(body)) + kind + body + struct.pack('>I', zlib.crc32(kind + body))
def png(path, w, h, colour, rows, orientation=0):
    exif = b'MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01' + struct.pack('>HH', orientation, 0) + b'\0\0\0\0'
    open(path, 'wb').write(b'\x89PNG\r\n\x1a\n' + chunk(b'IHDR', struct.pack('>IIBBBBB', w, h, 8, colour, 0, 0, 0)) +
                           (chunk(b'eXIf', exif) if orientation else b'') + chunk(b'IDAT', zlib.compress(b''.join(b'\0' + r for r in rows))) + chunk(b'IEND', b''))
w, h, pixels = picture.read_png('drawn/cam2.png')
rgb = [bytes(round(255 * v) for v in p[:3]) for p in pixels]
# orientation 6: shown after a turn clockwise, so stored turned the other way
png('turned.png', h, w, 2, [b''.join(rgb[r * w + w - 1 - y] for r in range(h)) for y in range(w)], 6)
png('tilted.png', w, h, 2, [b''.join(rgb[y * w:y * w + w]) for y in range(h)], 6)
png('grey.png', w, h, 0, [bytes(rgb[y * w + x][1] for x in range(w)) for y in range(h)])
P
python3 put.py || fail put
cp turned.png far/cam2.png && cp grey.png far/cam3.png

# --photos: the image folder itself, relative to where import runs; stored for later runs
must 0 imp s m.db
[ "$(sql m.db 'SELECT count(*) FROM photo')" = '(0,)' ] || fail 'photos before --photos'
mkdir below && cd below && must 0 imp ../s ../m.db --photos ../far && cd ..
[ "$(sql m.db 'SELECT count(*) FROM photo')" = '(4,)' ] || fail "photos of --photos: $(sql m.db 'SELECT * FROM photo')"
grep -q '1 photo is turned by its EXIF orientation' err || fail "$(cat err)"
must 0 imp s m.db --json
json 'd["status"] == "nothing to do"'
bake m.db
must 0 kiln render m.db --background white --json
json 'd["photos_damaged"] == 0'
for n in 0 2; do python3 -c "assert float('$(view cam$n)') > 45" || fail "cam$n: $(view cam$n)"; done
python3 -c "assert float('$(view cam1)') > float('$(view cam0)') + 20" || fail "16 bits: $(view cam1), 8 bits: $(view cam0)"
python3 -c "assert 5 < float('$(view cam3)') < 45" || fail "grey: $(view cam3)"
[ "$(sql m.db "SELECT width, height FROM photo WHERE camera = 'cam2'")" = '(96, 64)' ] || fail 'the turned photo has another size'

# an orientation that does not fit the camera is said, and not followed
cp tilted.png far/cam2.png
must 0 imp s m.db
grep -q '1 photo has an EXIF orientation and is taken as stored' err || fail "$(cat err)"
must 0 kiln render m.db --background white --json
python3 -c "assert float('$(view cam2)') > 45" || fail "cam2 as stored: $(view cam2)"
must 3 imp s m.db --photos m.db
grep -q "m.db' is no folder; --photos takes" err || fail "$(cat err)"

# a folder that has none of the photos is an error, which names it and what was sought; nothing falls back in silence
mkdir empty && cp -r s with && mkdir with/images && cp drawn/cam?.png with/images/
must 3 imp with w.db --photos empty
grep -q "^kiln-import: --photos '$KILN_TMP/empty' has none of the 4 photos that the cameras name; the first, '[^']*cam0[^']*', was sought in '$KILN_TMP/empty': name the folder that holds them, or take --photos back with --reset$" err || fail "an empty --photos: $(cat err)"
[ ! -e w.db ] || fail "a manifest was left"
must 3 imp with w.db --photos empty --list
# some are there: the others are told, by name
cp drawn/cam0.png empty/
must 0 imp with w.db --photos empty
grep -q "warning: of 4 photos 3 are not in --photos '$KILN_TMP/empty' and taken from elsewhere; the first is '$KILN_TMP/with/images/cam1.png'$" err || fail "what is elsewhere is not told: $(cat err)"
[ "$(sql w.db "SELECT count(*) FROM photo WHERE path LIKE '%/empty/cam0.png'")" = '(1,)' ] || fail "cam0 is not of --photos"
# it is stored: emptied later, the same command is refused, until --reset
rm empty/cam0.png
must 3 imp with w.db; grep -q "has none of the 4 photos" err || fail "a stored --photos: $(cat err)"
must 0 imp with w.db --reset
[ "$(sql w.db "SELECT count(*) FROM photo WHERE path LIKE '%/with/images/cam_.png'")" = '(4,)' ] || fail "photos after --reset"
# where no camera names a photo there is nothing to look for
must 0 imp s/scene.ply p.db --photos drawn
grep -q "warning: --photos '$KILN_TMP/drawn' is not looked into: no camera names a photo$" err || fail "no word of a --photos that is not used: $(cat err)"

# cfg_args: its folder of another machine, here beside the model's
mkdir -p model garden/images && cp s/*.json s/*.ply model/ && cp drawn/cam?.png garden/images/
echo "Namespace(images='images', source_path='/nowhere/data/garden', white_background=True)" >model/cfg_args
must 0 imp model c.db
[ "$(sql c.db "SELECT count(*) FROM photo WHERE path LIKE '%/garden/images/cam_.png'")" = '(4,)' ] || fail "photos of cfg_args: $(sql c.db 'SELECT * FROM photo')"
sed -i "s|/nowhere/data/garden|$KILN_TMP/elsewhere|" model/cfg_args && mv garden elsewhere
must 0 imp model c.db
[ "$(sql c.db "SELECT count(*) FROM photo WHERE path LIKE '%/elsewhere/images/cam_.png'")" = '(4,)' ] || fail 'photos of source_path as it stands'

# images_2 of odd sizes: each axis by the true size, whichever way it was rounded; all that are missing are named
mkdir -p n/images_2 && cp s/*.ply n/scene.ply
python3 - <<'P'
import json
from put import png
png('n/images_2/a.png', 48, 32, 2, [bytes(3 * 48)] * 32)
png('n/images_2/b.png', 47, 33, 2, [bytes(3 * 47)] * 33)
eye = [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 4], [0, 0, 0, 1]]
names = ['a', 'b'] + ['gone%02d' % i for i in range(7)]
json.dump({'fl_x': 95, 'fl_y': 65, 'cx': 47.5, 'cy': 32.5, 'w': 95, 'h': 65,
           'frames': [{'file_path': 'images/%s.png' % n, 'transform_matrix': eye} for n in names]}, open('n/transforms.json', 'w'))
P
must 0 imp n n.db
[ "$(sql n.db 'SELECT name, width, height, fx, fy, cx, cy FROM camera ORDER BY name' | tr '\n' ' ')" = \
    "('a', 48, 32, 48.0, 32.0, 24.0, 16.0) ('b', 47, 33, 47.0, 33.0, 23.5, 16.5) $(for i in 0 1 2 3 4 5 6; do echo -n "('gone0$i', 95, 65, 95.0, 65.0, 47.5, 32.5) "; done)" ] || fail "odd sizes: $(sql n.db 'SELECT name, width, height, fx, fy, cx, cy FROM camera')"
grep -q "not found: 7; the first, 'images/gone00.png', was sought in .*; so were 'images/gone01.png', .*'images/gone04.png' and 2 more (--list names them)" err || fail "$(cat err)"
must 0 imp n --list n.db
[ "$(grep -c '^misses *photo *images/gone0[0-6].png$' out)" = 7 ] || fail "$(cat out)"
must 0 imp n n.db --list --json
json 'd["photos_missing"]["names"] == ["images/gone%02d.png" % i for i in range(7)]'
