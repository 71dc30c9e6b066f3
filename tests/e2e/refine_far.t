#!/bin/bash
# kiln-lod --refine of a scene with cameras inside and a background far away, as captures are: no view that was left out is worse,
# also where few cameras see what it sees.
. tests/e2e/lib.sh
command -v python3 >/dev/null || skip "no python3"
TESTS=$PWD/tests/e2e
cd "$KILN_TMP" || exit 1
mkdir far && python3 "$TESTS/far.py" far || fail "scene"
kiln import far far.db >/dev/null && kiln knn far.db >/dev/null && kiln chunk far.db --layer source >/dev/null || fail "bake"
kiln render far.db --devices cpu --cameras far/cameras.json --background black --format npy --level 0 -o whole/ -w >/dev/null ||
    fail "render"
psnr() { # LEVEL: of each view for tests
    kiln render far.db --devices cpu --cameras far/cameras.json --background black --format npy --level "$1" -o part/ --force -w \
        >/dev/null ||
        fail "render"
    must 0 kiln compare whole part --json
    python3 -c 'import json
for p in json.load(open("out"))["pictures"]:
    if "test" in p["a"]: print(p["a"], p["psnr"])'
}
must 0 kiln lod far.db --levels 3 --antialiased off
for k in 1 2 3; do psnr $k >merged$k; done
must 0 kiln lod far.db --refine 100 --devices cpu
for k in 1 2 3; do
    test_case "level $k: no view that was left out is worse" && (
        psnr $k >refined$k
        [ "$(wc -l <refined$k)" = 3 ] || fail "not three views: $(cat refined$k)"
        paste merged$k refined$k |
            awk '$4 < $2 { print "level '$k', " $1 ": " $2 " dB merged, " $4 " dB refined"; bad = 1 } END { exit bad }' ||
            fail "a view is worse"
    ); result
done
