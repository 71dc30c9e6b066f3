#!/bin/bash
# Levels of a scene with cameras inside and a background far away, as captures are, fit what cameras see: the object in the middle
# keeps its rows, not the background, which is large in the world alone.
. tests/e2e/lib.sh
command -v python3 >/dev/null || skip "no python3"
TESTS=$PWD/tests/e2e
cd "$KILN_TMP" || exit 1
mkdir far && python3 "$TESTS/far.py" far || fail "scene"
kiln import far far.db >/dev/null && kiln knn far.db >/dev/null && kiln chunk far.db --layer source >/dev/null || fail "bake"
for aa in off on; do
    test_case "level 1 of a view that took no part, antialiased $aa" && (
        must 0 kiln lod far.db --levels 1 --antialiased $aa
        for k in 0 1; do
            must 0 kiln render far.db --devices cpu --camera test/11 --antialiased $aa --background black --format npy --level $k \
                -o at_$k/ --force -w
        done
        must 0 kiln compare at_0 at_1 --json
        python3 -c 'import json, sys; p, = json.load(sys.stdin)["pictures"]; sys.exit(p["psnr"] < 28.5)' <out ||
            fail "level 1, antialiased $aa: $(grep -o '"psnr": *[0-9.]*' out | head -1) for a view that took no part"
    ); result
done

# What a view asks for is told by the distances of the rows, though the cameras stand inside of the only chunk's box.
must 0 kiln lod far.db --levels 4 --antialiased off
for size in 1 0.25; do
    test_case "dB:25 at $size of the size" && (
        py cameras far/cameras.json $size >part.json || fail "cameras"
        must 0 kiln render far.db --devices cpu --cameras part.json --level 0 --background black --format npy -o whole/ --force -w
        must 0 kiln render far.db --devices cpu --cameras part.json --level dB:25 --background black --format npy -o part/ --force \
            -w --json
        python3 -c 'import json, sys
for v in json.load(open("out"))["views"]: assert v["detail"]["rows"] * 2 <= v["detail"]["full"], v' || fail "dB:25 at $size of the size draws more than half"
        must 0 kiln compare whole part --json
        python3 -c 'import json, sys
p = [v["psnr"] or 99 for v in json.load(open("out"))["pictures"]]
assert sum(p) / len(p) >= 24 and min(p) >= 22, p' || fail "dB:25 at $size of the size"
    ); result
done

# In many chunks, which hide one another, a picture is about as good as was asked: rather a decibel too good than below.
kiln import far many.db >/dev/null && kiln knn many.db >/dev/null && kiln chunk many.db --layer source --max 250 >/dev/null &&
    kiln lod many.db --coarsest 64 --antialiased off >/dev/null || fail "bake in chunks"
for case in "1 30" "0.5 25"; do
    read -r size db <<<"$case"

    test_case "dB:$db at $size of the size, in many chunks" && (
        py cameras far/cameras.json $size >part.json || fail "cameras"
        must 0 kiln render many.db --devices cpu --cameras part.json --level 0 --background black --format npy -o whole/ --force -w
        must 0 kiln render many.db --devices cpu --cameras part.json --level dB:$db --background black --format npy -o part/ \
            --force -w
        must 0 kiln compare whole part --json
        py as_good $db || fail "dB:$db at $size of the size, in many chunks"
    ); result
done

# A row far out does not decide how coarse a tile may be, nor a leaf of streamed SOG, nor from where on nothing is drawn.
root_error() { # BAKE: the errors of the root, of the tileset and of the coarsest level of streamed SOG
    kiln export "$1" --format 3dtiles -o tiles --force -w >/dev/null 2>&1 &&
        kiln export "$1" --format lod -o sog --force -w >/dev/null 2>&1 ||
        fail "export of $1"
    py root_error
}

test_case 'a row far out does not decide how coarse a tile may be, nor a leaf of streamed SOG' && (
    # The same as with this row beside the object.
    beside=
    for x in 2.5 3000 5e8; do
        mkdir out$x && python3 "$TESTS/far.py" out$x $x || fail "scene"
        kiln import out$x out$x.db >/dev/null && kiln knn out$x.db >/dev/null && kiln chunk out$x.db --layer source >/dev/null &&
            kiln lod out$x.db --levels 4 --antialiased off >/dev/null ||
            fail "bake"
        error=$(root_error out$x.db)
        beside=${beside:-$error}
        python3 -c 'import sys
sys.exit(any(abs(float(a) / float(b) - 1) > 0.1 for a, b in zip(*map(str.split, sys.argv[1:]))))' "$error" "$beside" ||
            fail "errors of the root, the tileset and a leaf of SOG are $error with a row at $x, $beside with it at 2.5"
    done
); result

# Without cameras: the orbit of a scene with an interior is no judge of it, which kiln-lod says; that of an object is.
import_bare() {
    kiln import "$1" "$2" >/dev/null && kiln knn "$2" >/dev/null && kiln chunk "$2" --layer source >/dev/null || fail "bake of $1"
}
weighed() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1])).get("weighed"))' "$1"; }
import_bare far/scene.ply bare.db

test_step 'a scene with an interior and without cameras is weighed by distance' && (
    must 0 kiln lod bare.db --levels 1 --json
    [ "$(weighed out)" = distance ] || fail "weighed by $(weighed out)"
    must 0 kiln verify bare.db
); result

test_case 'without cameras it is said what counts' && (
    cp bare.db said.db
    "$KILN_BIN/kiln-lod" said.db --levels 2 2>&1 | grep -q 'Gaussians are weighed by their distance from the middle' ||
        fail "it does not say what counts"
); result

test_case 'without cameras level 1 is as good' && (
    for k in 0 1; do
        must 0 kiln render bare.db --devices cpu --cameras far/cameras.json --background black --format npy --level $k -o bare_$k/ \
            --force -w
    done
    must 0 kiln compare bare_0 bare_1 --json
    python3 -c 'import json, sys
p = [v["psnr"] for v in json.load(sys.stdin)["pictures"]]
sys.exit(sum(p) / len(p) < 27.5)' <out ||
        fail "level 1 without cameras: $(grep -o '"psnr": *[0-9.]*' out | tr '\n' ' ')"
); result

test_case '--visibility off weighs by nothing' && (
    must 0 kiln lod bare.db --levels 1 --visibility off --json
    [ "$(weighed out)" = None ] || fail "--visibility off is weighed by $(weighed out)"
); result

test_case 'a room, coarser outside, is weighed by distance' && (
    mkdir room && python3 "$TESTS/far.py" room room || fail "room"
    import_bare room/scene.ply room.db
    must 0 kiln lod room.db --levels 1 --json
    [ "$(weighed out)" = distance ] || fail "a room, coarser outside, is weighed by $(weighed out)"
); result

test_case 'an object is not weighed by distance' && (
    mkdir object && python3 "$TESTS/far.py" object near || fail "object"
    import_bare object/scene.ply object.db
    must 0 kiln lod object.db --levels 1 --json
    [ "$(weighed out)" = None ] || fail "an object is weighed by $(weighed out)"
); result
