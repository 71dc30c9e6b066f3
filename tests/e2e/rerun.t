#!/bin/bash
# Promise 1: nothing changed, nothing done; a changed rule redoes what it changed; a parameter is kept until --reset.
. tests/e2e/lib.sh
db=$KILN_TMP/a/manifest.db
scene "$KILN_TMP/s" 6000 3 160x120
bake "$KILN_TMP/s" "$db" --max 512
before=$(digest "$db")

test_case 'nothing changed, nothing done' && (
    for s in import $STAGES; do
        if [ $s = import ]; then args=("$KILN_TMP/s" "$db"); else args=("$db"); fi
        "$KILN_BIN/kiln-$s" "${args[@]}" >"$KILN_TMP/out" 2>&1 || fail "second $s"
        grep -q 'nothing to do' "$KILN_TMP/out" || fail "second $s did something: $(cat "$KILN_TMP/out")"
    done
    [ "$before" = "$(digest "$db")" ] || fail "a second run changed the digests"
); result

test_step 'a changed rule makes later stages stale, and gives another bake' && (
    kiln prune "$db" --min-opacity 0.2 >/dev/null || fail "prune"
    kiln info "$db" --json >"$KILN_TMP/info" || fail "info"
    for s in chunk tiles render export; do
        tr -d ' \n' <"$KILN_TMP/info" | grep -q "\"name\":\"$s\"[^}]*\"state\":\"stale\"" || fail "$s is not stale after prune"
    done
    must 4 kiln tiles "$db"
    for s in chunk tiles render export; do kiln $s "$db" >/dev/null || fail "$s again"; done
    changed=$(digest "$db")
    [ "$before" != "$changed" ] || fail "another rule gave the same bake"
); result

test_step 'a parameter is kept until --reset' && (
    "$KILN_BIN/kiln-prune" "$db" 2>&1 | grep -q 'nothing to do' || fail "prune forgot the stored rule"
    kiln prune "$db" --reset >/dev/null || fail "prune --reset"
    for s in chunk tiles render export; do kiln $s "$db" >/dev/null || fail "$s after reset"; done
    [ "$before" = "$(digest "$db")" ] || fail "--reset did not bring the first bake back"
); result

test_case 'a missing picture is drawn again' && (
    rm "$KILN_TMP/a/renders/cam1.png"
    kiln render "$db" >/dev/null || fail "render"
    [ -f "$KILN_TMP/a/renders/cam1.png" ] || fail "a missing picture was not drawn again"
); result

# Pictures of other options are drawn over: with the first options again, they must be the first pictures again.
first=$(cat "$KILN_TMP"/a/renders/*.png | md5sum)

test_case 'pictures of other options are drawn over, there and back' && (
    kiln render "$db" --background white >/dev/null || fail "render over white"
    [ "$first" != "$(cat "$KILN_TMP"/a/renders/*.png | md5sum)" ] || fail "the background changed nothing"
    kiln render "$db" --background black >/dev/null || fail "render over black"
    [ "$first" = "$(cat "$KILN_TMP"/a/renders/*.png | md5sum)" ] || fail "pictures of other options were taken for the first"
); result

test_case 'a run with other options that drew some pictures and failed' && (
    mv "$KILN_TMP/a/renders/cam2.png" "$KILN_TMP/cam2.png"
    mkdir "$KILN_TMP/a/renders/cam2.png"
    ! "$KILN_BIN/kiln-render" "$db" --background white >/dev/null 2>&1 || fail "a picture was written over a folder"
    rmdir "$KILN_TMP/a/renders/cam2.png"
    mv "$KILN_TMP/cam2.png" "$KILN_TMP/a/renders/cam2.png"
    kiln render "$db" >/dev/null || fail "render after a failed run"
    [ "$first" = "$(cat "$KILN_TMP"/a/renders/*.png | md5sum)" ] || fail "pictures of a failed run were taken for the first"
); result

test_case 'a missing export is written again' && (
    rm "$KILN_TMP/a/export/scene.ply"
    kiln export "$db" >/dev/null || fail "export"
    [ -f "$KILN_TMP/a/export/scene.ply" ] || fail "a missing export was not written again"
); result

test_case 'a look through one camera draws into its usual place' && (
    kiln render "$db" --camera cam1 --background white >/dev/null || fail "render of one camera"
    kiln render "$db" >/dev/null || fail "render after one camera"
    [ "$first" = "$(cat "$KILN_TMP"/a/renders/*.png | md5sum)" ] || fail "another picture of one camera was taken for the first"
); result

test_case 'a copy of a bake is as fresh as the bake' && (
    cp -r "$KILN_TMP/a" "$KILN_TMP/copy"
    "$KILN_BIN/kiln-render" "$KILN_TMP/copy/manifest.db" 2>&1 | grep -q 'nothing to do' || fail "a copied bake was drawn again"
); result

test_case 'after --force there is nothing to do' && (
    kiln render "$db" --force >/dev/null || fail "render --force"
    "$KILN_BIN/kiln-render" "$db" 2>&1 | grep -q 'nothing to do' || fail "there was something to do after --force"
); result

test_case 'a list of cameras for --tables is checked' && (
    must 2 "$KILN_BIN/kiln-tiles" "$db" --tables cam0,cam9
    kiln tiles "$db" --tables 'cam0,#2' >/dev/null || fail "tiles of a list"
    [ "$(digest "$db" | grep -c '^table')" = 2 ] || fail "a list of two cameras gave $(digest "$db" | grep '^table')"
    kiln tiles "$db" --reset >/dev/null || fail "tiles --reset"
); result

# What a stage reads and import changed makes just that stage stale: a photo the pictures' distances, a comment the export.
state() { kiln info "$db" --json | tr -d ' \n' | sed -n "s/.*\"name\":\"$1\"[^}]*\"state\":\"\([a-z]*\)\".*/\1/p"; }

test_step 'a photo that changed makes render stale, and export not' && (
    mkdir "$KILN_TMP/s/images"
    cp "$KILN_TMP/a/renders/cam0.png" "$KILN_TMP/s/images/cam0.png"
    kiln import "$KILN_TMP/s" "$db" >/dev/null && kiln tiles "$db" >/dev/null && kiln render "$db" >/dev/null ||
        fail "import with a photo"
    cp "$KILN_TMP/a/renders/cam1.png" "$KILN_TMP/s/images/cam0.png"
    kiln import "$KILN_TMP/s" "$db" >/dev/null || fail "import with another photo"
    [ "$(state render)" = stale ] || fail "render is $(state render) after a photo changed"
    [ "$(state export)" = fresh ] || fail "export is $(state export) after a photo changed"
); result

test_step 'a picture is not measured against another photo than its unit says' && (
    cp "$KILN_TMP/a/renders/cam2.png" "$KILN_TMP/s/images/cam0.png"
    kiln tiles "$db" >/dev/null || fail "tiles"
    must 3 "$KILN_BIN/kiln-render" "$db" # the picture would be measured against another photo than its unit says
    grep -q 'changed' "$KILN_TMP/err" || fail "render says $(cat "$KILN_TMP/err")"
); result

test_step 'a comment of the header makes export stale, and chunk not' && (
    sed -i '0,/^format.*/s//&\ncomment antialiased 1/' "$KILN_TMP/s/"*.ply
    kiln import "$KILN_TMP/s" "$db" >/dev/null || fail "import with a comment"
    [ "$(state export)" = stale ] || fail "export is $(state export) after the header changed"
    [ "$(state chunk)" = fresh ] || fail "chunk is $(state chunk) after the header changed"
); result

test_case 'all of it made again is whole' && (
    for s in tiles render export; do kiln $s "$db" >/dev/null || fail "$s after import"; done
    kiln verify "$db" >/dev/null || fail "verify"
); result
