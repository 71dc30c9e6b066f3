#!/bin/bash
# What changes the meaning of results is said by its stage, again at the end of kiln pipeline, also when nothing was to be done, and
# in the report: photos that are missing, a background that does not fit, exposures, masks and values that look wrong, points that
# nobody has trained.
. tests/e2e/lib.sh
command -v python3 >/dev/null || skip "no python3"
root=$PWD
export PYTHONPATH=$root/tests/e2e PYTHONDONTWRITEBYTECODE=1
cd "$KILN_TMP" || exit 1
pipeline() { "$KILN_BIN/kiln" pipeline "$@" --devices cpu; }
# block STAGE SENTENCE: is in the block at the end, which tells only the beginning of what this run has said before, and in the report
block() {
    sed -n '/Warnings that affect these results:$/,$p' err | grep -q "^kiln pipeline: warning:   $1: ${2:0:60}" ||
        fail "not at the end: $1: $2: $(cat err)"
    grep -q "What changes the meaning of the results" s.bake/report.html && grep -q "<li>$1: $2" s.bake/report.html ||
        fail "not in the report: $1: $2"
}
python3 "$root/tests/e2e/ball.py" s 4 || fail ball

test_step 'cameras without photos, also when nothing was to be done' && (
    must 0 pipeline s --out s.bake
    block import '4 of 4 cameras have no photo; a camera without a photo is drawn, but not measured'
    must 0 pipeline s --out s.bake # nothing to do: said again
    block import '4 of 4 cameras have no photo'
); result

test_step 'a background that does not fit, and exposures' && (
    cp s.bake/renders/cam?.png s/
    echo '{"cam0.png": [[1,0,0,0.1],[0,1,0,0],[0,0,1,0]]}' >s/exposure.json
    must 0 pipeline s --out s.bake --background 9,200,9 --overwrite
    ! grep -q 'cameras have no photo' err || fail "photos are there: $(cat err)"
    block render 'where nothing is drawn, the photos are black but the background is 9,200,9'
    block render '1 of 4 pictures are compared as exposure.json says'
    must 0 pipeline s --out s.bake --no-exposure --background black --overwrite
    ! grep -q 'Warnings that affect' err || fail "nothing changes it: $(cat err)"
    ! grep -q 'What changes the meaning' s.bake/report.html || fail 'the report says so still'
); result

test_case 'exposures and masks that are not used' && (
    echo '{"cam0.png": [[1' >s/exposure.json
    mkdir s/masks && cp s/cam0.png s/masks/of_cam0.png
    must 0 pipeline s --out s.bake --no-exposure --background black --overwrite
    block import 'exposures are not used: '
    block import ".*/masks.* holds 1 picture, but none is the mask of a photo"
    rm -r s/masks s/exposure.json
); result

test_case 'values that look activated' && (
    python3 "$root/tests/e2e/dialects.py" "$KILN_TMP" || fail dialects
    rm -rf s.bake
    must 0 pipeline activated.ply --out s.bake
    block import 'the values look activated already'
    rm -rf s.bake
    must 0 pipeline activated.ply --out s.bake --activated
    ! grep -q 'Warnings that affect' err || fail "--activated: $(cat err)"
    rm -rf s.bake
); result

test_case 'another file beside that of the bake, and a later step of it' && (
    "$KILN_BIN/kiln" generate scene made -n 300 -q && "$KILN_BIN/kiln" generate scene few -n 200 -q && mkdir m || fail generate
    cp made/*.ply other.ply && cp few/*.ply m/splat_7000.ply || fail generate
    must 0 pipeline m --stages import
    cp other.ply m/
    for run in first second; do
        must 0 pipeline m --stages import
        grep -q 'nothing to do' err || fail "$run: $(cat err)"
        tail -1 err | grep -q "^kiln pipeline: warning:   import: 'other.ply' is not used.*kiln import 'm' 'm/bake/manifest.db' --reset" ||
            fail "$run: $(cat err)"
    done
    cp m/splat_7000.ply m/splat_30000.ply
    must 0 pipeline m --stages import
    grep -q "'splat_30000.ply' takes the place of 'splat_7000.ply'" err || fail "a later step: $(cat err)"
    tail -1 err | grep -q "'other.ply' is not used" || fail "a later step: $(cat err)"
    must 0 "$KILN_BIN/kiln" import m m/bake/manifest.db --reset
    grep -q 'Gaussians: other.ply' err || fail "--reset: $(cat err)"
    must 0 pipeline m --stages import
    ! grep -q 'is not used, because' err || fail "it is chosen: $(cat err)"
    rm -r m made few other.ply
); result

test_step 'points that nobody has trained' && (
    mkdir -p p
    py points
    must 0 pipeline p --out s.bake2
    mv s.bake2 s.bake3 && rm -rf s.bake && mv s.bake3 s.bake
    block knn 'the Gaussians are made of points, untrained: scales from neighbours, for a trainer to begin with'
    grep -q '^made 50 Gaussians of the points, untrained: scales from neighbours, for a trainer to begin with$' out ||
        fail "knn: $(cat out)"
    grep -q '^the Gaussians are made of points, untrained' out || fail "render: $(cat out)"
); result

test_case 'what prune warns of' && (
    rm -rf s.bake
    must 0 pipeline p --out s.bake --drop-row 7,1000
    block prune '1 of 2 rows named with --drop-row are not in the scene'
    must 0 pipeline p --out s.bake # nothing to do: said again
    block prune '1 of 2 rows named with --drop-row are not in the scene'
    must 0 pipeline p --out s.bake --drop-row 7
    ! grep -q 'prune: ' err || fail "nothing to warn of: $(cat err)"
); result

test_case 'an orbit outside of the sky' && (
    kiln generate demo d --gaussians 8000 --cameras 1 --size 64x48 >/dev/null && cp d/scene.ply sky.ply || fail generate
    rm -rf s.bake
    must 0 pipeline sky.ply --out s.bake --orbit-at outside
    block render 'the orbit is outside of what surrounds the scene (sky, walls), and the pictures may show only that;'
    [ "$(grep -c 'or look from inside: kiln render' err)" = 1 ] || fail "one long line twice: $(cat err)"
    inside=$(sed -n "s/^kiln-render: warning: .* kiln render 's.bake.manifest.db' \(--orbit .*\) -o look.$/\1/p" err)
    # shellcheck disable=SC2086
    must 0 "$KILN_BIN/kiln-render" s.bake/manifest.db $inside --size 64x48 -o look/ --devices cpu
    ! grep -q 'outside of what' err || fail "within: $(cat err)"
    must 0 "$KILN_BIN/kiln-render" s.bake/manifest.db --size 64x48 -o far/ --devices cpu
    py ground far/orbit_0.png look/orbit_0000.png || fail "$inside does not look from inside"
    must 0 pipeline sky.ply --out s.bake # nothing to do: said again
    block render 'the orbit is outside of what surrounds the scene'
    grep -q '^kiln pipeline: .*or look from inside: kiln render' err || fail "not in full: $(cat err)"
); result

test_case 'the orbit runs inside of a sky by itself' && (
    kiln generate demo d2 --gaussians 8000 --cameras 1 --size 64x48 >/dev/null && cp d2/scene.ply sky.ply || fail generate
    rm -rf s.bake
    must 0 pipeline sky.ply --out s.bake
    [ "$(grep -c 'orbit is within a sky or walls (--orbit-at outside' err)" = 1 ] || fail "it is not said: $(cat err)"
    ! grep -q 'is outside of what' err || fail "warned of the orbit within: $(cat err)"
    must 0 "$KILN_BIN/kiln-render" s.bake/manifest.db --size 64x48 -o within/ --devices cpu
    must 0 "$KILN_BIN/kiln-import" sky.ply far.db --orbit-at outside
    ! grep -q 'within a sky' err || fail "what was asked for is said again: $(cat err)"
    for s in knn prune chunk tiles; do must 0 "$KILN_BIN/kiln-$s" far.db --devices cpu; done
    must 0 "$KILN_BIN/kiln-render" far.db --size 64x48 -o far/ --devices cpu
    py ground far/orbit_0.png within/inner_0.png || fail 'the orbit within does not see the ground'
    must 0 "$KILN_BIN/kiln" convert sky.ply sky.html
    grep -q 'within a sky' err && grep -q '"name":"inner_0","split":"orbit"' sky.html || fail "the page begins elsewhere: $(cat err)"
); result

test_case 'an orbit around more than pruning has left' && (
    rm -rf s.bake
    py balls balls.ply
    must 0 pipeline balls.ply --out s.bake
    ! grep -q 'the orbit' err || fail "all balls: $(cat err)"
    must 0 pipeline balls.ply --out s.bake --filter-cluster 0.2,0.5,0.1
    block render 'the orbit runs around the whole scene, in which what pruning has left is small; to look at that:'
    around=$(sed -n "s/^kiln-render: warning: .* kiln render 's.bake.manifest.db' \(--orbit .*\) -o look.$/\1/p" err)
    # shellcheck disable=SC2086
    must 0 "$KILN_BIN/kiln-render" s.bake/manifest.db $around --size 64x48 -o near/ --devices cpu
    must 0 "$KILN_BIN/kiln-render" s.bake/manifest.db --size 64x48 -o all/ --devices cpu
    py larger near/orbit_0000.png all/orbit_0.png || fail "$around does not look at what is left"
); result

test_case 'an orbit around an object' && (
    rm -rf s.bake
    must 0 pipeline s/scene.ply --out s.bake
    ! grep -q 'runs inside\|outside of what' err || fail "a ball has no sky: $(cat err)"
); result
