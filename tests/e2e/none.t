#!/bin/bash
# kiln-render --format none: the pixels of the pictures that are written, hashed, and no file; fresh like any other picture.
. tests/e2e/lib.sh
scene "$KILN_TMP/s" 12000 3 160x120
mkdir "$KILN_TMP/m" && db=$KILN_TMP/m/manifest.db
bake "$KILN_TMP/s" "$db" --max 1024
png=$(digest "$db") && rm -r "$KILN_TMP/m/renders"

test_step 'the pixels of the pictures, hashed, and no file' && (
    must 0 kiln render "$db" --format none --json
    [ ! -e "$KILN_TMP/m/renders" ] || fail "--format none wrote $(ls "$KILN_TMP/m/renders")"
    grep -q '"frames_drawn": 3' "$KILN_TMP/out" && grep -q '"frames_encoded": 0' "$KILN_TMP/out" || fail "$(cat "$KILN_TMP/out")"
    [ "$(grep -c '"file": null' "$KILN_TMP/out")" = 3 ] || fail "a picture without a file has one: $(cat "$KILN_TMP/out")"
    [ "$(digest "$db")" = "$png" ] || fail 'pixels with --format none are not those of the PNGs'
    must 0 kiln verify "$db"
); result

test_case 'a second run draws nothing' && (
    "$KILN_BIN/kiln-render" "$db" 2>&1 | grep -q 'nothing to do' || fail 'a second run drew something'
    must 0 kiln render "$db" --force
); result

test_case 'a camera path needs no -o, and nothing is written' && (
    must 0 kiln render "$db" --cameras "$KILN_TMP/s/cameras.json" --format none --json
    [ "$(grep -c '"pixels"' "$KILN_TMP/out")" = 3 ] || fail "$(cat "$KILN_TMP/out")"
    must 2 kiln render "$db" --camera cam0 --format none -o "$KILN_TMP/x.png"
    must 2 kiln render "$db" --cameras "$KILN_TMP/s/cameras.json" --format png
    [ ! -e "$KILN_TMP/x.png" ] || fail '--format none wrote the file of -o'
); result

test_case '-o asks for a file' && (
    must 0 kiln render "$db" --camera cam0 -o "$KILN_TMP/x.png"
    [ -s "$KILN_TMP/x.png" ] || fail '-o wrote nothing'
); result

test_case 'back to files: all of them are due' && (
    must 0 kiln render "$db" --format png --json
    grep -q '"frames_encoded": 3' "$KILN_TMP/out" && [ -s "$KILN_TMP/m/renders/cam1.png" ] || fail "$(cat "$KILN_TMP/out")"
); result
