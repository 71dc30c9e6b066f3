#!/bin/bash
# INRIA's exposure.json: pictures are compared as their photos were exposed, and drawn so where that is asked for; a file that is
# gone or damaged costs the metric or its use, with a sentence. With train_test_exp=True test views are measured in their right
# halves.
. tests/e2e/lib.sh
command -v python3 >/dev/null || skip "no python3"
root=$PWD
export PYTHONPATH=$root/tests/e2e PYTHONDONTWRITEBYTECODE=1
cd "$KILN_TMP" || exit 1
json() { python3 -c 'import json, sys; d = json.load(open("out"))
psnr = {v["name"]: v["psnr"] for v in d["views"]} if "views" in d else {}
assert eval(sys.argv[1]), d' "$1" || fail "$1"; }
imp() { "$KILN_BIN/kiln-import" "$@"; }
render() { "$KILN_BIN/kiln-render" m/m.db --background black --json "$@"; }

python3 "$root/tests/e2e/ball.py" s 4 || fail ball
kiln import s first/m.db >/dev/null && for stage in knn prune chunk; do kiln $stage first/m.db >/dev/null || fail $stage; done
for i in 0 1 2 3; do kiln render first/m.db --camera cam$i --background black -o cam$i.npy >/dev/null || fail "cam$i.npy"; done
# photos p E[:,:3] + E[:,3] of the drawn pictures p; cam3 has the identity, and of cam0, the test view, the left half is spoilt
py photos || fail photos
echo "Namespace(eval=True, train_test_exp=True, images='images')" >s/cfg_args
cp s/exposure.json kept

test_step 'pictures are compared as their photos were exposed' && (
    must 0 imp s m/m.db
    grep -q 'exposure: exposure.json (of 4 of 4 cameras; 3 change the picture before it is compared with its photo)' err ||
        fail "import: $(cat err)"
    for stage in knn prune chunk; do kiln $stage m/m.db >/dev/null || fail $stage; done
    must 0 render
    grep -q '3 of 4 pictures are compared as exposure.json says' err &&
        grep -q '1 test view is measured in the right half alone' err ||
        fail "render: $(cat err)"
    json 'min(psnr.values()) > 50 and d["exposure"] == {"file": "exposure.json", "drawn": 0, "compared": 3, "right_halves": 1}'
    must 0 render
    json 'd["status"] == "nothing to do"'
); result

test_case 'drawn as exposed: the files are the photos' && (
    must 0 render --exposure on
    json 'min(psnr.values()) > 50 and d["exposure"]["drawn"] == 3'
    py as_exposed || fail 'a picture is not as its photo was exposed'
); result

test_case 'with alpha what is written is exposed over the exposed background' && (
    must 0 render --exposure on --alpha
    py alpha_exposed || fail 'straight alpha is not exposed'
); result

test_case 'as they are, without exposures' && (
    must 0 render --no-exposure --no-alpha
    json 'psnr["cam1"] < 20 and psnr["cam3"] > 50 and d["exposure"]["compared"] == 0'
    must 0 render --exposure compare
); result

test_case 'other cameras by the same names, and an orbit, on which none has one' && (
    must 0 kiln render m/m.db --cameras s/cameras.json --format none --json
    json 'psnr["cam1"] > 50'
    must 0 kiln render m/m.db --orbit 2 --exposure on --format none --json
    json '"exposure" not in d'
); result

test_case 'exposures that are gone or others: not measured, and measured again once they are back' && (
    rm s/exposure.json
    touch s/cam1.png && rm -r m/renders
    must 0 render
    json 'all(v is None for v in psnr.values()) and d["photos_damaged"] == 4'
    grep -q "not measured, because photos need the exposures: .*exposure.json" err || fail "gone: $(cat err)"
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
); result

test_case 'damaged exposures are not used' && (
    for bad in '{"cam1.png": [[1, 0, 0, 0], [0, 1, 0, 0]]}' '{"cam1.png": 3}' '[]' '{' \
        '{"a.png": [[1,0,0,0],[0,1,0,0],[0,0,1,0]], "a.jpg": [[1,0,0,0],[0,1,0,0],[0,0,1,0]]}'; do
        echo "$bad" >s/exposure.json
        must 0 imp s m/m.db --list
        grep -q 'warning: exposures are not used: .*exposure.json' err || fail "damaged, $bad: $(cat err)"
    done
    must 0 imp s m/m.db
    must 0 render
    json 'psnr["cam1"] < 20 and "compared" in d["exposure"] and d["exposure"]["compared"] == 0'
); result

test_case 'exposures of other images are not used' && (
    echo '{"other.png": [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]]}' >s/exposure.json
    must 0 imp s m/m.db --list
    grep -q 'leaves   exposure  *exposure.json: .*: none of its images has the name of a camera' out || fail "list: $(cat out)"
); result

test_case 'without train_test_exp' && (
    cp kept s/exposure.json
    echo "Namespace(eval=True, images='images')" >s/cfg_args
    must 0 imp s m/m.db
    must 0 render
    json 'psnr["cam0"] < 20 and psnr["cam1"] > 50'
); result
