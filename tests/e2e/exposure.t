#!/bin/bash
# INRIA's exposure.json: pictures are compared as their photos were exposed, and drawn so where that is asked for; a file that is gone or
# damaged costs the metric or its use, with a sentence. With train_test_exp=True test views are measured in their right halves.
. tests/e2e/lib.sh
command -v python3 >/dev/null || skip "no python3"
root=$PWD
export PYTHONPATH=$root/tests/e2e PYTHONDONTWRITEBYTECODE=1
cd "$KILN_TMP" || exit 1
json() { python3 -c 'import json, sys; d = json.load(open("out")); psnr = {v["name"]: v["psnr"] for v in d["views"]} if "views" in d else {}; assert eval(sys.argv[1]), d' "$1" || fail "$1"; }
imp() { "$KILN_BIN/kiln-import" "$@"; }
render() { "$KILN_BIN/kiln-render" m/m.db --background black --json "$@"; }

python3 "$root/tests/e2e/ball.py" s 4 || fail ball
kiln import s first/m.db >/dev/null && for stage in knn prune chunk; do kiln $stage first/m.db >/dev/null || fail $stage; done
for i in 0 1 2 3; do kiln render first/m.db --camera cam$i --background black -o cam$i.npy >/dev/null || fail "cam$i.npy"; done
# photos p E[:,:3] + E[:,3] of the drawn pictures p; cam3 has the identity, and of cam0, the test view, the left half is spoilt
cat >exposed.py <<'P'
import json
from picture import *
E = {'cam0': [[.8, .1, 0, .02], [0, .7, 0, .05], [.05, 0, .9, 0]], 'cam1': [[.6, 0, .2, .1], [.1, .5, 0, .03], [0, .1, .7, .2]],
     'cam2': [[.9, 0, 0, 0], [0, .9, 0, 0], [0, 0, .9, 0]], 'cam3': [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]]}
for name, e in E.items():
    width, height, pixels = read_npy(name + '.npy')
    rows = []
    for i, p in enumerate(pixels):
        q = [sum(p[k] * e[k][c] for k in range(3)) + e[c][3] for c in range(3)]
        rows.append([255, 0, 255] if name == 'cam0' and i % width < width // 2 else [min(255, max(0, round(v * 255))) for v in q])
    write_png('s/%s.png' % name, width, height, rows)
json.dump({'./cam0.png' if n == 'cam0' else n + '.png': e for n, e in E.items()}, open('s/exposure.json', 'w'))
P
python3 exposed.py || fail photos
echo "Namespace(eval=True, train_test_exp=True, images='images')" >s/cfg_args

must 0 imp s m/m.db
grep -q 'exposure: exposure.json (of 4 of 4 cameras; 3 change the picture before it is compared with its photo)' err || fail "import: $(cat err)"
for stage in knn prune chunk; do kiln $stage m/m.db >/dev/null || fail $stage; done
must 0 render
grep -q '3 of 4 pictures are compared as exposure.json says' err && grep -q '1 test view is measured in the right half alone' err || fail "render: $(cat err)"
json 'min(psnr.values()) > 50 and d["exposure"] == {"file": "exposure.json", "drawn": 0, "compared": 3, "right_halves": 1}'
must 0 render
json 'd["status"] == "nothing to do"'
# drawn so: the files are the photos, and with alpha what is written is exposed over the exposed background
must 0 render --exposure on
json 'min(psnr.values()) > 50 and d["exposure"]["drawn"] == 3'
python3 - <<'P' || fail 'a picture is not as its photo was exposed'
from picture import *
for name in ('cam1', 'cam2', 'cam3'):
    w, h, drawn = read_png('m/renders/%s.png' % name)
    photo = read_png('s/%s.png' % name)[2]
    assert max(abs(a[c] - b[c]) for a, b in zip(drawn, photo) for c in range(3)) < 1.5 / 255, name
P
must 0 render --exposure on --alpha
python3 - <<'P' || fail 'straight alpha is not exposed'
from picture import *
exec(open('exposed.py').read().split('for name')[0])
w, h, drawn = read_png('m/renders/cam1.png')
photo = read_png('s/cam1.png')[2]
behind = [E['cam1'][c][3] for c in range(3)] # the black background, exposed
n = 0
for a, b in zip(drawn, photo):
    if a[3] < .9: continue # of a small alpha a code's rounding is large
    n += 1
    assert max(abs(a[c] * a[3] + behind[c] * (1 - a[3]) - b[c]) for c in range(3)) < 2.5 / 255, (a, b)
assert n > 100
P
# as they are
must 0 render --no-exposure --no-alpha
json 'psnr["cam1"] < 20 and psnr["cam3"] > 50 and d["exposure"]["compared"] == 0'
must 0 render --exposure compare

# other cameras by the same names; on an orbit none has one
must 0 kiln render m/m.db --cameras s/cameras.json --format none --json
json 'psnr["cam1"] > 50'
must 0 kiln render m/m.db --orbit 2 --exposure on --format none --json
json '"exposure" not in d'

# gone or another one: not measured, and measured again once it is back
mv s/exposure.json kept
touch s/cam1.png && rm -r m/renders
must 0 render
json 'all(v is None for v in psnr.values()) and d["photos_damaged"] == 4'
grep -q "not measured, as photos need the exposures: .*exposure.json" err || fail "gone: $(cat err)"
must 3 render --exposure on
must 0 render --exposure compare
json 'd["status"] == "nothing to do"'
cp kept s/exposure.json
must 0 render
json 'min(psnr.values()) > 50'
sed 's/0.6/0.5/' kept >s/exposure.json
rm -r m/renders
must 0 render
grep -q "exposure.json' changed since import" err || fail "another one: $(cat err)"
must 0 imp s m/m.db
must 0 render
json '20 < psnr["cam1"] < 50 and psnr["cam2"] > 50'

# damaged, of other images, and without train_test_exp
for bad in '{"cam1.png": [[1, 0, 0, 0], [0, 1, 0, 0]]}' '{"cam1.png": 3}' '[]' '{' '{"a.png": [[1,0,0,0],[0,1,0,0],[0,0,1,0]], "a.jpg": [[1,0,0,0],[0,1,0,0],[0,0,1,0]]}'; do
    echo "$bad" >s/exposure.json
    must 0 imp s m/m.db --list
    grep -q 'warning: exposures are not used: .*exposure.json' err || fail "damaged, $bad: $(cat err)"
done
must 0 imp s m/m.db
must 0 render
json 'psnr["cam1"] < 20 and "compared" in d["exposure"] and d["exposure"]["compared"] == 0'
echo '{"other.png": [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]]}' >s/exposure.json
must 0 imp s m/m.db --list
grep -q 'leaves   exposure exposure.json: .*: no camera has the name of one of its images' out || fail "list: $(cat out)"
cp kept s/exposure.json
echo "Namespace(eval=True, images='images')" >s/cfg_args
must 0 imp s m/m.db
must 0 render
json 'psnr["cam0"] < 20 and psnr["cam1"] > 50'
