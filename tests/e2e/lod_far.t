#!/bin/bash
# Levels of a scene with cameras inside and a background far away, as captures are, fit what cameras see: the object in the middle keeps
# its rows, not the background, which is large in the world alone.
. tests/e2e/lib.sh
command -v python3 >/dev/null || skip "no python3"
TESTS=$PWD/tests/e2e
cd "$KILN_TMP" || exit 1
mkdir far && python3 "$TESTS/far.py" far || fail "scene"
kiln import far far.db >/dev/null && kiln knn far.db >/dev/null && kiln chunk far.db --layer source >/dev/null || fail "bake"
for aa in off on; do
    must 0 kiln lod far.db --levels 1 --antialiased $aa
    for k in 0 1; do
        must 0 kiln render far.db --devices cpu --camera test/11 --antialiased $aa --background black --format npy --level $k -o at_$k/ --force
    done
    must 0 kiln compare at_0 at_1 --json
    python3 -c 'import json, sys; p, = json.load(sys.stdin)["pictures"]; sys.exit(p["psnr"] < 28.5)' <out ||
        fail "level 1, antialiased $aa: $(grep -o '"psnr": *[0-9.]*' out | head -1) for a view that took no part"
done
