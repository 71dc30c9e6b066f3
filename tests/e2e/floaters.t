#!/bin/bash
# A few floaters far away cost no other Gaussian its place in silence: of each format, what its reader makes of a file is within a
# step of every position, or rows that are not are counted, or the export is refused. 3D Tiles put what a tile's codes cannot hold
# into tiles of its own, which are drawn at every level.
. tests/e2e/lib.sh
command -v python3 >/dev/null || skip "no python3"
root=$PWD
cd "$KILN_TMP" || exit 1
export PYTHONPATH=$root/tests/e2e PYTHONDONTWRITEBYTECODE=1
lost() { py near "$@" || fail "$2 has other rows"; }
# one LAYER.db FORMAT FILE STEP: exports and imports again; sets lost to the rows that are elsewhere, counted to those that the
# export counts
one() {
    rm -rf "$3" again.db again.ply
    must 0 "$KILN_BIN/kiln-export" "$1" --format "$2" -o "$3"
    counted=$(sed -n 's/.* \([0-9]*\) rows\{0,1\} [ia][sr]e\{0,1\} rounded to position steps larger.*/\1/p' err)
    counted=${counted:-0}
    case $2 in 3dtiles | rad) again=$3 ;; *)
        kiln import "$3" again.db >/dev/null && kiln export again.db --layer source -o again.ply >/dev/null ||
            fail "$2 cannot be read again"
        again=again.ply ;;
    esac
    [ "$2" != 3dtiles ] || again=$3/tileset.json
    lost=$(lost scene.ply "$again" "$4")
    echo "$2, floaters at $far: $lost of 4005 rows are elsewhere, $counted are counted"
}
for far in 5e8 3000; do
    rm -rf s m.db && mkdir s && python3 "$root/tests/e2e/floaters.py" s/scene.ply $far 5 || fail scene
    kiln import s m.db >/dev/null && for stage in knn prune chunk lod; do kiln $stage m.db >/dev/null || fail $stage; done
    kiln export m.db -w -o scene.ply >/dev/null || fail ply

    test_case "floaters at $far: formats that are exact" && (
        for format in "glb x.glb" "splat x.splat" "ksplat0 x.ksplat" "rad x.rad"; do
            one m.db $format 1e-7
            [ "$lost" = 0 ] || fail "$format: $lost rows are elsewhere"
        done
    ); result

    test_case "floaters at $far: formats with steps of a thousandth" && (
        # steps of 1/1000 of a unit are fine enough
        for format in "ksplat x.ksplat" "ksplat2 x.ksplat" "compressed-ply x.compressed.ply"; do
            one m.db $format 1e-3
            [ "$lost" -le "$counted" ] || fail "$format: $lost rows are elsewhere, $counted are counted"
        done
    ); result

    test_case "floaters at $far: formats with steps that grow with the distance" && (
        # its steps grow with the distance: of 65,535 from the logarithm of one side to that of the other
        for format in "sog x.sog" "sog-folder x.sogs/" "lod x.lod/"; do
            one m.db $format 0.0004
            [ "$lost" = 0 ] || fail "$format: $lost rows are elsewhere, $counted are counted"
        done
    ); result

    test_case "floaters at $far: 3D Tiles" && (
        one m.db 3dtiles x.tiles 1e-7
        [ "$lost" = 0 ] || fail "3dtiles: $lost rows are elsewhere"
        facts=$(python3 "$root/tests/validators/tileset.py" x.tiles/tileset.json) || fail "not valid: $facts"
        [ $far = 3000 ] || grep -q \
            '5 rows lie too far away for the codes of nearby tiles; 5 tiles of their own, drawn at every level, hold them' err \
            ||
            fail "3dtiles says: $(cat err)"
        [ $far = 5e8 ] || grep -q 'the positions of [0-9]* tiles\{0,1\} have steps of up to 1/2048 instead of 1/4096' err ||
            fail "3dtiles says: $(cat err)"
    ); result

    test_case "floaters at $far: SPZ" && (
        # SPZ has one step for all
        for format in spz spz4; do
            rm -f x.spz
            [ $far = 3000 ] && one m.db $format x.spz 2.5e-4 && { [ "$lost" = 0 ] || fail "$format: $lost rows are elsewhere"; }
            [ $far = 3000 ] || must 3 kiln export m.db --format $format -o x.spz
        done
    ); result
done

test_case 'large Gaussians do not make steps of a unit reach farther' && (
    rm -f x.spz
    must 3 kiln export m.db --format spz --scale 10000 -o x.spz
    grep -q 'SPZ holds coordinates of up to 8388607 units, but one is ' err || fail "spz says: $(cat err)"
); result

rm -rf s m.db && mkdir s && python3 "$root/tests/e2e/floaters.py" s/scene.ply 5e8 60 || fail scene
kiln import s m.db >/dev/null && for stage in knn prune; do kiln $stage m.db >/dev/null || fail $stage; done
kiln chunk m.db --max 900 >/dev/null && kiln lod m.db --coarsest 300 >/dev/null || fail "chunk"
must 0 "$KILN_BIN/kiln-export" m.db --format 3dtiles -o a.tiles --threads 1
cp err said

test_case '3D Tiles: the same files for any threads and little memory' && (
    for how in '--threads 2' '--workers 3' '--ram 200M'; do
        rm -rf b.tiles
        # shellcheck disable=SC2086
        must 0 kiln export m.db --format 3dtiles -o b.tiles $how
        diff -r a.tiles b.tiles >&2 || fail "other bytes with $how"
    done
); result

test_case '3D Tiles: 60 floaters are few enough for tiles of their own' && (
    ! grep -q 'codes of any tile' said || fail "60 floaters are few enough for tiles of their own: $(cat said)"
); result

test_case '3D Tiles: floaters are where they were' && (
    py places || fail "floaters are not where they were"
); result

test_case '3D Tiles: a moved scene has all its rows' && (
    must 0 kiln export m.db --format 3dtiles --scale 2 --rotate 0,90,0 --translate 100,0,0 -o moved.tiles
    facts=$(python3 "$root/tests/validators/tileset.py" moved.tiles/tileset.json) || fail "not valid: $facts"
    [[ $facts = *'"leaf_rows": 4060,'* ]] || fail "moved: $facts"
); result
