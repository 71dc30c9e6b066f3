#!/bin/bash
# Promise 6: errors say what and end with their code; bad input leaves nothing behind and changes nothing.
. tests/e2e/lib.sh
one_sentence() { [ "$(grep -c . "$KILN_TMP/err")" = 1 ] || fail "not one sentence: $(cat "$KILN_TMP/err")"; }
ascii_ply 'float x float y float z' '1 2 3' '4 five 6' >"$KILN_TMP/bad.ply"

test_case 'a file that is refused leaves nothing' && (
    must 3 kiln import "$KILN_TMP/bad.ply" "$KILN_TMP/new/x.db"; one_sentence
    [ -z "$(ls -A "$KILN_TMP/new" 2>/dev/null)" ] || fail "a rejected file left something: $(ls -A "$KILN_TMP/new")"
    must 3 kiln import "$KILN_TMP/none.ply" "$KILN_TMP/new/x.db"; one_sentence
); result

scene "$KILN_TMP/s" 2000 1 64x64
db=$KILN_TMP/x.db
kiln import "$KILN_TMP/s" "$db" >/dev/null || fail "import"
sum=$(sha256sum <"$db")

test_case 'a file that is refused changes nothing' && (
    must 3 kiln import "$KILN_TMP/bad.ply" "$db"; one_sentence
    [ "$sum" = "$(sha256sum <"$db")" ] || fail "a rejected file changed the manifest"
); result

test_case 'a wrong command line' && (
    must 2 kiln knn "$db" --neighbours 3; one_sentence
    grep -q -- '--neighbors' "$KILN_TMP/err" || fail "no suggestion: $(cat "$KILN_TMP/err")"
    must 2 kiln knn "$db" --neighbors 99; one_sentence
    must 2 kiln knn; one_sentence
    must 2 kiln chunk "$db" --max 100 --min 200; one_sentence
); result

test_case 'a stage that lacks another' && (
    must 4 kiln tiles "$db"; one_sentence
    must 4 kiln render "$db"; one_sentence
); result

test_case 'what never computes takes no device' && (
    for tool in info verify; do must 2 kiln $tool "$db" --devices cpu; one_sentence; done # what never computes takes no device
); result

test_case 'a device that is not there' && (
    CUDA_VISIBLE_DEVICES=-1 must 6 kiln knn "$db" --devices cuda; one_sentence
); result

test_case 'a file that is no manifest' && (
    must 3 kiln knn "$KILN_TMP/s/scene.ply"; one_sentence
); result

test_case 'the folder of a scene or of its bake, where the manifest was meant' && (
    mkdir "$KILN_TMP/s/bake" && cp "$db" "$KILN_TMP/s/bake/manifest.db"
    for folder in "$KILN_TMP/s" "$KILN_TMP/s/" "$KILN_TMP/s/bake"; do
        must 3 kiln info "$folder"; one_sentence
        grep -q "did you mean '$KILN_TMP/s/*bake/manifest.db'" "$KILN_TMP/err" || fail "$folder: $(cat "$KILN_TMP/err")"
    done
    must 3 kiln info "$KILN_TMP"; one_sentence
    ! grep -q 'did you mean' "$KILN_TMP/err" || fail "a manifest that is not there: $(cat "$KILN_TMP/err")"
    rm -r "$KILN_TMP/s/bake"
); result

# a finished file is renamed to its place: that must never put it in the place of a pipe, a device or a folder
bake "$KILN_TMP/s" "$KILN_TMP/b/x.db"
db=$KILN_TMP/b/x.db
mkfifo "$KILN_TMP/pipe"; ln -s pipe "$KILN_TMP/link"

test_case 'a finished file never takes the place of a pipe or a link' && (
    for to in pipe link; do
        must 74 kiln render "$db" --camera '#0' -o "$KILN_TMP/$to"; one_sentence
        must 74 kiln export "$db" -o "$KILN_TMP/$to"; one_sentence
    done
    [ -p "$KILN_TMP/pipe" ] && [ -L "$KILN_TMP/link" ] || fail "a pipe was replaced by a file"
); result

test_case 'a layer that is not there' && (
    must 3 kiln export "$db" --layer initial; one_sentence
); result

scene "$KILN_TMP/t" 10 2 16x16
test_case 'several pictures into one file' && (
    must 2 kiln render "$db" --cameras "$KILN_TMP/t/cameras.json" -o "$KILN_TMP/one.png"; one_sentence
    [ ! -e "$KILN_TMP/one.png" ] || fail "a folder with the name of a picture"
); result

test_case '--help and --version' && (
    must 0 kiln knn "$db" --help
    must 0 kiln knn --version
); result

test_case 'workers start without stdin and stdout' && (
    (kiln import "$KILN_TMP/t" "$KILN_TMP/closed.db" --quiet <&- >&-) || fail "exit $?: the workers' socket has taken the place of a closed stream"
    kiln verify "$KILN_TMP/closed.db" >/dev/null
); result
