#!/bin/bash
# What is the user's in the bake's own folder: pictures and exports at their default places, kiln pipeline, bakes of before, copies
# and kills; and files that no longer follow from the bake, which are named, and which kiln gc alone removes.
. tests/e2e/lib.sh
command -v python3 >/dev/null || skip "no python3"
KILN_BIN=$(cd "$KILN_BIN" && pwd) here=$PWD
cd "$KILN_TMP" || exit 1
front() { "$KILN_BIN/kiln" "$@"; }
sum() { md5sum <"$1"; }
must 0 kiln generate demo s --gaussians 300 --cameras 4 --size 32x20
photos=$(cat s/images/* s/scene.ply s/cameras.json | md5sum)
scene_stays() { [ "$photos" = "$(cat s/images/* s/scene.ply s/cameras.json | md5sum)" ] || fail "$*: the scene is another one"; }
json() { python3 -c "import json,sys; d=json.load(sys.stdin); print($1)"; }

test_case "kiln pipeline --out s, where s/renders holds the user's pictures" && (
    mkdir s/renders; cp s/images/view_00.png s/renders/view_00.png; echo mine >s/renders/notes.txt
    before=$(sum s/renders/view_00.png)
    must 2 front pipeline s --out s
    grep -q "renders/view_00.png' exists" err || fail "$(cat err)"
    [ ! -e s/manifest.db ] && [ "$before" = "$(sum s/renders/view_00.png)" ] || fail "a refused bake has begun"
    rm -r s/renders
); result

test_case "an export of the user's is told at once" && (
    mkdir s/export; echo mine >s/export/scene.spz; echo mine >report.html
    must 2 front pipeline s --out s --export spz
    grep -q "export/scene.spz' exists" err || fail "$(cat err)"
    rm -r s/export report.html
); result

test_case "a report and a video of the user's are told at once" && (
    mkdir o; echo mine >o/report.html
    must 2 front pipeline s --out o
    echo mine >v.mp4
    must 2 front pipeline s --out o2 --video v.mp4 --no-report
    [ "$(cat v.mp4 o/report.html)" = "$(printf 'mine\nmine')" ] && [ ! -e o2/manifest.db ] || fail "a refused bake has begun"
    must 0 front pipeline s --out o -w --quiet
    [ -f o/manifest.db ] && grep -q SplatKiln o/report.html || fail "no bake with -w"
    rm -r o
); result

test_case "the bake may lie in the scene's folder" && (
    must 0 front pipeline s --out s --quiet
    must 0 front pipeline s --out s --quiet --background white
    scene_stays "--out s"
    printf x >>s/renders/view_01.png
    must 2 front pipeline s --out s --quiet --background black
    grep -q "view_01.png' was changed since" err || fail "$(cat err)"
    must 2 kiln render s/manifest.db --background black
    must 0 front pipeline s --out s --quiet --background black -w
    mv s/manifest.db s/renders s/export s/report.html . && rm -f s/manifest.db* && rm -r renders export report.html manifest.db
); result

must 0 front pipeline s --out b --quiet --export ply,splat,csv,sog-folder,chunks --depth
db=b/manifest.db

test_step 'ours are replaced: other options, --force, those that carry no mark' && (
    must 0 kiln export $db --force
    must 0 kiln export $db --order baked --no-normals
    must 0 kiln export $db --order source --no-no-normals
    must 0 kiln render $db --force
    must 0 kiln render $db --background white
    must 0 kiln render $db --format npy
    must 0 kiln render $db --format npy --background black
    must 0 kiln render $db --format png
); result

test_step 'what was removed is made again' && (
    rm b/renders/view_01.png b/export/sog/meta.json b/export/scene.splat
    must 0 kiln render $db
    must 0 kiln export $db
    [ -f b/renders/view_01.png ] && [ -f b/export/sog/meta.json ] && [ -f b/export/scene.splat ] ||
        fail "what was removed is not made again"
); result

test_step 'drawn over by a later -o of ours: still ours' && (
    must 0 kiln render $db --camera '#0' --background 255,0,0 -o b/renders/view_00.png
    must 0 kiln render $db
); result

test_step 'edited by hand: kept, and made again with -w' && (
    for edit in renders/view_00.png renders/view_00.depth.png export/scene.ply export/scene.splat export/scene.csv \
        export/sog/means_l.webp export/chunks/index.json; do
        printf x >>b/$edit; before=$(sum b/$edit)
        program=export; [[ $edit = renders/* ]] && program=render
        must 2 kiln $program $db --force
        grep -q "was changed since" err || fail "$edit: $(cat err)"
        [ "$before" = "$(sum b/$edit)" ] || fail "$edit was refused, and changed"
        must 0 kiln $program $db --force -w
        [ "$before" != "$(sum b/$edit)" ] || fail "$edit was not made again"
    done
); result

test_case "a file of the user's that lies where a new format would go" && (
    echo mine >b/export/scene.glb
    must 2 kiln export $db --format ply,glb
    [ "$(cat b/export/scene.glb)" = mine ] || fail "scene.glb was replaced"
    rm b/export/scene.glb
); result

test_case 'a copy of the bake is as much ours' && (
    cp -r b copy
    must 0 kiln render copy/manifest.db --background white
    must 0 kiln export copy/manifest.db --order baked --format ply,splat,csv --no-normals
    cp -a b copy2
    must 0 kiln export copy2/manifest.db --order baked --no-normals
    rm -r copy copy2
); result

test_case 'a run that was killed, of files that carry no mark' && (
    cp -a b killed
    killed_when_stored killed/manifest.db render 1000000 timeout -s KILL 0.3 "$KILN_BIN/kiln-render" killed/manifest.db --format \
        npy --background 1,2,3 ||
        :
    must 0 kiln render killed/manifest.db --format npy --background 1,2,3
    must 0 kiln render killed/manifest.db --format npy --background 3,2,1
    rm -r killed
); result

test_case 'links below the bake are refused, and what they lead to stays' && (
    echo behind >behind; rm b/renders/view_02.png; ln -s "$KILN_TMP/behind" b/renders/view_02.png
    ! "$KILN_BIN/kiln-render" $db >/dev/null 2>err || fail "a link was written through"
    [ "$(cat behind)" = behind ] || fail "what a link led to was replaced"
    rm b/renders/view_02.png; must 0 kiln render $db
    scene_stays "default places"
); result

test_case 'a bake of a version before, which has no list' && (
    cp -a b old
    sqlite3 old/manifest.db "DELETE FROM unit WHERE stage = 'product'"
    must 2 kiln render old/manifest.db --format npy --background 7,7,7 # of earlier pictures, which no row names any more
    rm old/renders/*.npy
    must 0 kiln render old/manifest.db --format npy
    sqlite3 old/manifest.db "DELETE FROM unit WHERE stage = 'product'"
    must 0 kiln render old/manifest.db --background 9,9,9 # .npy, by the rows of images
    must 0 kiln export old/manifest.db --force            # .splat and .csv, by what export remembers
    sqlite3 old/manifest.db "DELETE FROM unit WHERE stage = 'product'"
    printf x >>old/export/scene.splat
    must 2 kiln export old/manifest.db --force
    must 0 kiln verify old/manifest.db
    rm -r old
); result

superseded() { kiln info "$1" --json | json '" ".join(x["path"] for x in d["superseded"])'; }

test_step 'pictures of another format are superseded, and gc removes them' && (
    [[ "$(superseded $db)" = renders/view_00.depth.npy*renders/view_03.npy* ]] ||
        fail "pictures of another format: $(superseded $db)"
    must 0 kiln gc $db
    [ -z "$(find b -name '*.npy')" ] && [ "$(ls b/renders)" = "$(printf 'view_0%d.depth.png\nview_0%d.png\n' 0 0 1 1 2 2 3 3)" ] ||
        fail "gc left: $(ls b/renders)"
    must 0 front pipeline s --out b --quiet
    [ -z "$(superseded $db)" ] || fail "after a bake: $(superseded $db)"
); result

test_step 'a prune supersedes what was exported of other rows' && (
    must 0 front pipeline s --out b --min-opacity 0.3 --export spz --no-report
    grep -q "files of the bake's folder do not belong to the bake any more: .*export/.*kiln gc b/manifest.db" err ||
        fail "$(cat err)"
    for f in export/scene.ply export/scene.splat export/scene.csv export/sog/ export/chunks/index.json report.html; do
        [[ " $(superseded $db) " = *" $f "* ]] || fail "$f is not named: $(superseded $db)"
    done
    [[ " $(superseded $db) " != *" export/scene.spz "* ]] && [[ " $(superseded $db) " != *view_0* ]] ||
        fail "too much: $(superseded $db)"
    must 0 front info $db
    grep -q 'do not belong to the bake any more' out && grep -q 'export/' out || fail "$(cat out)"
); result

test_step 'cameras that are gone' && (
    mkdir s2; cp -r s/images s/scene.ply s2; python3 - <<'PY'
import json
json.dump(json.load(open("s/cameras.json"))[:2], open("s2/cameras.json", "w"))
PY
    must 0 front pipeline s2 --out b --no-report --quiet
    [[ " $(superseded $db) " = *" renders/view_03.png "* ]] && [[ " $(superseded $db) " != *" renders/view_01.png "* ]] ||
        fail "cameras: $(superseded $db)"
); result

printf x >>b/renders/view_02.png
echo mine >b/renders/mine.png; echo mine >b/export/mine.ply; echo mine >b/export/chunks/mine.bin

test_case 'gc --dry-run lists, and removes nothing' && (
    find b | sort >before
    must 0 front gc $db --dry-run
    grep -q 'export/scene.ply' out && grep -q 'renders/view_02.png (changed, so kept)' out || fail "$(cat out)"
    diff <(find b | sort) before || fail "gc --dry-run removes"
); result

test_case 'gc removes what is superseded and unchanged' && (
    must 0 kiln gc $db
    for f in export/scene.ply export/scene.splat export/sog export/chunks/index.json renders/view_03.png report.html; do
        [ ! -e b/$f ] || fail "gc left $f"
    done
    for f in export/scene.spz renders/view_00.png renders/view_01.png renders/view_02.png renders/mine.png export/mine.ply \
        export/chunks/mine.bin; do
        [ -e b/$f ] || fail "gc removed $f"
    done
    [ "$(ls b/export/chunks)" = mine.bin ] || fail "gc left of the chunks: $(ls b/export/chunks)"
    [ -z "$(superseded $db)" ] || fail "after gc: $(superseded $db)"
    must 0 kiln gc $db
    must 0 kiln verify $db
    must 0 kiln render $db && must 0 kiln export $db
); result

test_case 'three scenes that share one NAME.bake' && (
    mkdir t; cp s/scene.ply t/x.ply; must 0 kiln export $db --format splat,spz -o t/of/; mv t/of/scene.splat t/x.splat
    mv t/of/scene.spz t/x.spz
    must 0 front pipeline t/x.ply --quiet --export ply --no-report
    must 0 front pipeline t/x.splat --quiet --export splat --no-report
    must 0 front pipeline t/x.spz --export spz --no-report
    grep -q 'do not belong to the bake any more: .*scene.ply.*scene.splat' err || fail "$(cat err)"
); result

test_case 'a file where the bake should be: it is named, with what writes files' && (
    echo mine >there.spz
    must 2 front pipeline s/scene.ply -o there.spz
    grep -q "'there.spz' is there and is a file.*choose another place; kiln convert IN OUT" err || fail "$(cat err)"
    [ "$(cat there.spz)" = mine ] || fail 'it was changed'
); result

test_case 'the scene stays' && (
    scene_stays "all of it"
); result
