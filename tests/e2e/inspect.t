#!/usr/bin/env bash
# kiln-verify names what is damaged and ends with 74; kiln-info says what is there. Neither changes the manifest.
. tests/e2e/lib.sh
cd "$KILN_TMP" || exit 1
scene scene 2000 9 96x64 # the 1st and the 9th of the sorted names are the test split
bake scene m.db --max 512
cp m.db again.db
must 0 kiln tiles again.db --near 0.3 --json --devices cpu
cp out tiles.json
before=$(cksum m.db)

test_case 'verify says how much it checked' && (
    must 0 "$KILN_BIN/kiln-verify" m.db
    grep -qE '^m\.db: checked [0-9.]+ [KM]iB in [0-9]+ blobs, .* 9 tile tables, 9 cameras, 9 images, .*: all is well$' out ||
        fail "verify says $(cat out)"
); result

test_case 'the digest has a line for each image, layer and table' && (
    must 0 "$KILN_BIN/kiln-verify" --digest m.db
    [ "$(cut -d' ' -f1 out | sort | uniq -c | tr -s ' \n' ' ')" = ' 9 image 4 layer 9 table ' ] || fail "digest lines: $(cat out)"
    LC_ALL=C sort -c out || fail 'digest lines are not sorted'
    ! grep -vqE '^(image|layer|table) [^ ]+ [0-9a-f]{32}$' out || fail 'a digest line is not three words'
); result

test_case 'info for people' && (
    must 0 "$KILN_BIN/kiln-info" m.db
    for stage in import knn prune chunk tiles render; do
        grep -qE "^$stage +fresh " out || fail "info does not say that $stage is fresh"
    done
); result

test_case 'info --json' && (
    must 0 "$KILN_BIN/kiln-info" --json m.db
    py info out || fail 'info --json'
); result

test_case 'info of pictures that are fast, as a GPU would have drawn them' && (
    cp m.db fast.db
    py make_fast fast.db || fail 'fast.db'
    must 0 "$KILN_BIN/kiln-info" fast.db
    grep -qx '8 pictures drawn with --fast, not exactly; 3 measured: at least 64.3 dB from the exact ones' out ||
        fail "info of fast pictures: $(cat out)"
    must 0 "$KILN_BIN/kiln-info" --json fast.db
    py fast_info out || fail 'info --json of fast pictures'
    rm fast.db
); result

test_case 'times whose difference is in no 64-bit integer are refused' && (
    cp m.db times.db
    py times_apart times.db || fail 'times.db'
    must 3 "$KILN_BIN/kiln-info" times.db
    grep -q 'began before 1970' err || fail "it does not say what is wrong: $(cat err)"
); result

test_case 'the largest times that a row may have' && (
    cp m.db times.db
    py largest_times times.db || fail 'times.db'
    must 0 "$KILN_BIN/kiln-info" --json times.db
    python3 - out <<'PY' || fail 'info --json of extreme times'
import json, sys
d = json.load(open(sys.argv[1]))
assert all(abs(s["seconds"] - 2**63 * 1e-9) < 1 for s in d["stages"] if s["name"] != "lod"), [s["seconds"] for s in d["stages"]]
PY
    rm times.db
); result

test_case 'looking changes nothing' && (
    [ "$before" = "$(cksum m.db)" ] || fail 'looking changed the manifest'
    [ -z "$(ls m.db-* m.db.lock 2>/dev/null)" ] || fail "looking left $(ls m.db-* m.db.lock 2>/dev/null)"
); result

test_case 'damage in some places is found' && (
    pages=$(($(stat -c %s m.db) / 65536))
    for page in 3 $((pages / 2)) $((pages - 2)); do
        cp m.db bad.db
        head -c 64 /dev/zero | tr '\0' '\252' | dd of=bad.db bs=1 seek=$((page * 65536 + 30000)) conv=notrunc status=none
        cmp -s m.db bad.db && continue
        "$KILN_BIN/kiln-verify" bad.db >out 2>err && code=0 || code=$?
        [ $code -eq 74 ] || [ $code -eq 0 ] || fail "page $page: exit $code"
        [ $code -eq 0 ] || ! grep -q 'damaged' err || found=1
    done
    [ -n "${found:-}" ] || fail 'no damage was found'
); result

test_case 'a bake that nothing is left of is whole' && (
    kiln import scene none.db >/dev/null || fail 'import'
    kiln knn none.db >/dev/null || fail 'knn'
    kiln prune none.db --crop-box 9e5,9e5,9e5,9e6,9e6,9e6 >/dev/null || fail 'prune'
    for stage in chunk tiles render; do kiln $stage none.db >/dev/null || fail "$stage of nothing"; done
    must 0 "$KILN_BIN/kiln-verify" none.db
    rm none.db
); result

test_case 'what is no manifest' && (
    must 3 "$KILN_BIN/kiln-verify" none.db
    must 3 "$KILN_BIN/kiln-info" scene/cameras.json
    grep -q 'not a manifest' err || fail 'no sentence for a file that is no manifest'
    must 2 "$KILN_BIN/kiln-info"
); result
