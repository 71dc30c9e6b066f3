#!/bin/bash
# Where photos are found and how they are taken: --photos, the training data of cfg_args, images_N of odd sizes, EXIF orientations,
# 16-bit and grey PNGs, and the names of all that are missing.
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
kiln render first/m.db --background white -o drawn >/dev/null &&
    kiln render first/m.db --background white --format png16 -o deep >/dev/null ||
    fail drawn
mkdir far && cp drawn/cam?.png far/ && cp deep/cam1.png far/cam1.png
py put || fail put
cp turned.png far/cam2.png && cp grey.png far/cam3.png

test_step '--photos is the image folder itself' && (
    must 0 imp s m.db
    [ "$(sql m.db 'SELECT count(*) FROM photo')" = '(0,)' ] || fail 'photos before --photos'
    mkdir below && cd below && must 0 imp ../s ../m.db --photos ../far && cd ..
    [ "$(sql m.db 'SELECT count(*) FROM photo')" = '(4,)' ] || fail "photos of --photos: $(sql m.db 'SELECT * FROM photo')"
    grep -q '1 photo is turned by its EXIF orientation' err || fail "$(cat err)"
); result

test_step 'photos that are turned, of 16 bits and grey are measured' && (
    must 0 imp s m.db --json
    json 'd["status"] == "nothing to do"'
    bake m.db
    must 0 kiln render m.db --background white --json
    json 'd["photos_damaged"] == 0'
    for n in 0 2; do python3 -c "assert float('$(view cam$n)') > 45" || fail "cam$n: $(view cam$n)"; done
    python3 -c "assert float('$(view cam1)') > float('$(view cam0)') + 20" || fail "16 bits: $(view cam1), 8 bits: $(view cam0)"
    python3 -c "assert 5 < float('$(view cam3)') < 45" || fail "grey: $(view cam3)"
    [ "$(sql m.db "SELECT width, height FROM photo WHERE camera = 'cam2'")" = '(96, 64)' ] ||
        fail 'the turned photo has another size'
); result

test_case 'an orientation that does not fit the camera is said, and not followed' && (
    cp tilted.png far/cam2.png
    must 0 imp s m.db
    grep -q '1 photo has an EXIF orientation and is taken as stored' err || fail "$(cat err)"
    must 0 kiln render m.db --background white --json
    python3 -c "assert float('$(view cam2)') > 45" || fail "cam2 as stored: $(view cam2)"
    must 3 imp s m.db --photos m.db
    grep -q "m.db' is not a folder; --photos takes" err || fail "$(cat err)"
); result

test_step '--photos with none of the photos is an error' && (
    mkdir empty && cp -r s with && mkdir with/images && cp drawn/cam?.png with/images/
    must 3 imp with w.db --photos empty
    grep "^kiln-import: --photos '$KILN_TMP/empty' has none of the 4 photos that the cameras name; the first is '[^']*cam0[^']*', looked for in " err |
        grep -q " looked for in '$KILN_TMP/empty': name the folder that holds them, or take --photos back with --reset$" ||
        fail "an empty --photos: $(cat err)"
    [ ! -e w.db ] || fail "a manifest was left"
    must 3 imp with w.db --photos empty --list
); result

test_step '--photos with some of the photos: the others are told, by name' && (
    cp drawn/cam0.png empty/
    must 0 imp with w.db --photos empty
    grep "warning: of 4 photos 3 are not in --photos '$KILN_TMP/empty' and taken from elsewhere; " err |
        grep -q "; the first is '$KILN_TMP/with/images/cam1.png'$" ||
        fail "what is elsewhere is not told: $(cat err)"
    [ "$(sql w.db "SELECT count(*) FROM photo WHERE path LIKE '%/empty/cam0.png'")" = '(1,)' ] || fail "cam0 is not of --photos"
); result

test_case 'a stored --photos that is emptied is refused, until --reset' && (
    rm empty/cam0.png
    must 3 imp with w.db; grep -q "has none of the 4 photos" err || fail "a stored --photos: $(cat err)"
    must 0 imp with w.db --reset
    [ "$(sql w.db "SELECT count(*) FROM photo WHERE path LIKE '%/with/images/cam_.png'")" = '(4,)' ] || fail "photos after --reset"
); result

test_case 'where no camera names a photo there is nothing to look for' && (
    must 0 imp s/scene.ply p.db --photos drawn
    grep -q "warning: --photos '$KILN_TMP/drawn' is not used, because no camera names a photo$" err ||
        fail "no word of a --photos that is not used: $(cat err)"
); result

test_step "the folder of cfg_args is another machine's, and here beside the model's" && (
    mkdir -p model garden/images && cp s/*.json s/*.ply model/ && cp drawn/cam?.png garden/images/
    echo "Namespace(images='images', source_path='/nowhere/data/garden', white_background=True)" >model/cfg_args
    must 0 imp model c.db
    [ "$(sql c.db "SELECT count(*) FROM photo WHERE path LIKE '%/garden/images/cam_.png'")" = '(4,)' ] ||
        fail "photos of cfg_args: $(sql c.db 'SELECT * FROM photo')"
); result

test_case 'the folder of cfg_args as it stands' && (
    sed -i "s|/nowhere/data/garden|$KILN_TMP/elsewhere|" model/cfg_args && mv garden elsewhere
    must 0 imp model c.db
    [ "$(sql c.db "SELECT count(*) FROM photo WHERE path LIKE '%/elsewhere/images/cam_.png'")" = '(4,)' ] ||
        fail 'photos of source_path as it stands'
); result

test_case 'images_2 of odd sizes, and the names of all that are missing' && (
    mkdir -p n/images_2 && cp s/*.ply n/scene.ply
    py odd_sizes
    must 0 imp n n.db
    [ "$(sql n.db 'SELECT name, width, height, fx, fy, cx, cy FROM camera ORDER BY name' | tr '\n' ' ')" = \
        "('a', 48, 32, 48.0, 32.0, 24.0, 16.0) ('b', 47, 33, 47.0, 33.0, 23.5, 16.5) $(for i in 0 1 2 3 4 5 6; do echo -n "('gone0$i', 95, 65, 95.0, 65.0, 47.5, 32.5) "; done)" ] ||
        fail "odd sizes: $(sql n.db 'SELECT name, width, height, fx, fy, cx, cy FROM camera')"
    grep "not found: 7; the first is 'images/gone00.png', looked for in .*; so were 'images/gone01.png', " err |
        grep -q ", .*'images/gone04.png' and 2 more (--list names them)" ||
        fail "$(cat err)"
    must 0 imp n --list n.db
    [ "$(grep -c '^misses *photo *images/gone0[0-6].png$' out)" = 7 ] || fail "$(cat out)"
    must 0 imp n n.db --list --json
    json 'd["photos_missing"]["names"] == ["images/gone%02d.png" % i for i in range(7)]'
); result
