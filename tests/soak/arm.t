#!/bin/bash
# SplatKiln for aarch64 under emulation: it compiles, and layers, tile tables, pictures and files have the bits of this machine's
# build. A build and a sysroot in $O-aarch64 stay for the next time; e2e/aarch64.t uses them, too.
# time-limit: 36000
cd "$(dirname "$0")/../.." || exit 1
. tests/e2e/lib.sh
. tests/soak/aarch64.sh
aarch64_needs_tools
command -v dpkg-deb >/dev/null && command -v apt-get >/dev/null || skip "no apt-get or dpkg-deb"
aarch64_make_root
aarch64_make_exec
aarch64_make -j"$(nproc)" all tests
there() { emulated "$aarch64_bin/kiln-$1" "${@:2}"; }

# same_bake SCENE CAMERA [option of kiln pipeline]: every stage but the pictures, of which one is drawn: under emulation each takes
# minutes.
same_bake() {
    local where db stages=import,knn,prune,chunk,tiles
    [ "${3:-}" != --lod ] || stages=import,knn,prune,chunk,lod,tiles
    must 0 "$KILN_BIN/kiln" pipeline "$1" --out "$1.here" --devices cpu --stages "$stages" "${@:3}"
    must 0 emulated "$aarch64_bin/kiln" pipeline "$1" --out "$1.there" --devices cpu --stages "$stages" "${@:3}"
    for where in here there; do
        db=$1.$where/manifest.db
        must 0 "$KILN_BIN/kiln" verify "$db" --digest
        cp "$KILN_TMP/out" "$1.$where.digest"
    done
    diff "$1.here.digest" "$1.there.digest" || fail "digests differ"
    grep -q '^layer baked' "$1.here.digest" && grep -q '^table' "$1.here.digest" || fail "digests: $(cat "$1.here.digest")"
    must 0 kiln render "$1.here/manifest.db" --camera "$2" --size 160x100 --devices cpu -o "$1.here.npy"
    must 0 there render "$1.there/manifest.db" --quiet --camera "$2" --size 160x100 --devices cpu -o "$1.there.npy"
    cmp "$1.here.npy" "$1.there.npy" || fail "pictures differ"
    echo "$1: $(wc -l <"$1.here.digest") digests and a picture are the same; layer baked $(sed -n 's/^layer baked //p' "$1.here.digest")"
}

test_case 'a generated scene has the same bytes' && (
    scene "$KILN_TMP/s" 3000 2 64x48
    must 0 there generate scene "$KILN_TMP/t" --gaussians 3000 --cameras 2 --size 64x48 --quiet
    diff -r "$KILN_TMP/s" "$KILN_TMP/t" || fail "scenes differ"
); result

test_case 'levels of detail' && (
    scene "$KILN_TMP/l" 6000 2 64x48
    same_bake "$KILN_TMP/l" cam0 --lod
    grep -q '^layer levels' "$KILN_TMP/l.here.digest" || fail "no levels: $(cat "$KILN_TMP/l.here.digest")"
); result

test_case 'the demo' && (
    must 0 "$KILN_BIN/kiln" generate demo "$KILN_TMP/demo"
    same_bake "$KILN_TMP/demo" view_00
); result

test_case 'the chair' && (
    [ -n "$KILN_SHARED" ] && [ -e "$KILN_SHARED/scenes/chair" ] || skip 'no chair in the reference data'
    cp -r "$KILN_SHARED/scenes/chair" "$KILN_TMP/chair" && chmod -R u+w "$KILN_TMP/chair"
    must 0 "$KILN_BIN/kiln" import "$KILN_TMP/chair" "$KILN_TMP/names.db"
    camera=$(python3 -c 'import sqlite3, sys; print(sqlite3.connect(sys.argv[1]).execute("SELECT name FROM camera ORDER BY name").fetchone()[0])' "$KILN_TMP/names.db")
    same_bake "$KILN_TMP/chair" "$camera"
); result

test_case 'files of every format have the same bytes' && (
    must 0 "$KILN_BIN/kiln" generate scene "$KILN_TMP/f" --gaussians 3000 --cameras 2 --size 64x48
    for suffix in ply compressed.ply sog spz splat ksplat glb csv; do
        must 0 "$KILN_BIN/kiln" convert "$KILN_TMP/f/scene.ply" "$KILN_TMP/here.$suffix"
        must 0 emulated "$aarch64_bin/kiln" convert "$KILN_TMP/f/scene.ply" "$KILN_TMP/there.$suffix"
        cmp "$KILN_TMP/here.$suffix" "$KILN_TMP/there.$suffix" || fail "$suffix differs"
    done
); result
