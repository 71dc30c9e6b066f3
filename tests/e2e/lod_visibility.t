#!/bin/bash
# kiln-lod --visibility: how much cameras see of each Gaussian, as a layer of its own, the same on any threads; what decides about
# it, and what a change leads to.
. tests/e2e/lib.sh
TESTS=$PWD/tests/e2e
cd "$KILN_TMP" || exit 1
number() { python3 -c 'import json, sys; d = json.load(open(sys.argv[1])); print(eval(sys.argv[2], {}, {"d": d}))' "$1" "$2"; }
chunked() {
    kiln import "$1" "$2" >/dev/null && kiln knn "$2" >/dev/null && kiln prune "$2" >/dev/null &&
        kiln chunk "$2" --max 256 >/dev/null ||
        fail "bake of $1"
}
seen() { digest "$1" | grep '^layer visibility'; }
lod() { must 0 kiln lod "$@" --json --levels 2 --coarsest 256; cp out "${1%.db}.json"; must 0 kiln verify "$1"; }

scene s 2400 9 96x64
chunked s base.db
cp base.db one.db
lod one.db --threads 1

test_case 'there is visibility where there are cameras' && (
    [ -n "$(seen one.db)" ] || fail "there are cameras and no visibility"
    [ "$(number one.json 'd["visibility"]["views"] > 4')" = True ] || fail "one list would do for so few cameras"
); result

test_step 'the same on two threads, under a cap and without AVX2' && (
    cp base.db two.db
    lod two.db --threads 2 --ram 256M
    same one.db two.db
    KILN_ISA=baseline
    export KILN_ISA
    lod two.db --force
    unset KILN_ISA
    same one.db two.db
    "$KILN_BIN/kiln-lod" two.db 2>&1 --levels 2 --coarsest 256 | grep -q 'nothing to do' || fail "something to do"
); result

test_case 'a plane beside those of the chunks, which levels carry' && (
    py planes one.db || fail "the planes are not what they should be"
); result

test_case 'off, and on again: nothing is computed anew' && (
    lod two.db --visibility off
    [ -z "$(seen two.db)" ] || fail "--visibility off leaves a layer"
    [ "$(number two.json '"visibility" in d')" = False ] || fail "--visibility off is reported as on"
    [ "$(digest one.db | grep '^layer levels')" != "$(digest two.db | grep '^layer levels')" ] || fail "visibility weighs nothing"
    lod two.db --visibility auto
    same one.db two.db
    [ "$(number two.json 'd["units"]["done"]')" = 0 ] || fail "what was stored is computed again"
); result

test_case 'fewer cameras see other things' && (
    lod two.db --views 2
    [ "$(number two.json 'd["visibility"]["views"]')" = 2 ] || fail "not two cameras"
    [ "$(seen one.db)" != "$(seen two.db)" ] || fail "two cameras see what all see"
    must 2 kiln lod two.db --views 0
    must 2 kiln lod two.db --visibility on
); result

test_case 'one opacity changed: few chunks see it, and only these and the cells above are merged again' && (
    cp -r s moved
    edit_ply moved/scene.ply opacity 1200 'v + 0.125'
    cp one.db moved.db
    chunked moved moved.db
    lod moved.db
    py changed_chunks one.db moved.db moved.json || fail "other chunks changed than those whose rows are seen otherwise"
); result

test_case 'what stands behind others is hidden' && (
    cp -r s opaque
    edit_ply opaque/scene.ply opacity all 6
    chunked opaque opaque.db
    lod opaque.db
    [ "$(number opaque.json 'd["visibility"]["hidden"]')" -gt "$(number one.json 'd["visibility"]["hidden"]')" ] ||
        fail "opaque Gaussians hide no more"
); result

test_case 'the orbit that a scene without cameras gets' && (
    mkdir bare && python3 "$TESTS/far.py" bare near && rm bare/cameras.json || fail 'an object'
    chunked bare/scene.ply bare.db
    lod bare.db
    [ -n "$(seen bare.db)" ] || fail "the orbit of a scene without cameras sees nothing"
); result

# What is stored of visibility may be other bytes of the same size under a right hash: the unit is named, and the same command
# computes it again. kiln-verify sees that the layer has another plane.
# spoil DB UNIT [due [OUTPUT]]: an opacity plane of the same rows in the place of the unit's largest output, or of one
spoil() {
    cp one.db "$1"
    py spoil "$@" || fail "cannot spoil '$2'"
}
for output in 'visibility of :visibility' 'visibility of :prominence' 'views 1 of :%'; do
    unit=${output%:*}

    test_case "other bytes in the place of $output are noticed" && (
        spoil spoiled.db "$unit" due "${output#*:}"
        must 74 kiln lod spoiled.db
        grep -q "the stored results of unit '$unit[^']*' cannot be used: .*; run the same command to compute them again$" err ||
            fail "kiln-lod says: $(cat err)"
        must 0 kiln lod spoiled.db
        must 0 kiln verify spoiled.db
        same one.db spoiled.db
    ); result
done
for plane in prominence visibility; do
    test_case "kiln-verify sees that a unit keeps another $plane than the layer has" && (
        spoil spoiled.db 'visibility of ' '' $plane
        must 74 kiln verify spoiled.db
        grep -q "unit 'visibility of [^']*' keeps another $plane than the layer has; kiln-lod --force" err ||
            fail "kiln-verify says: $(cat err)"
    ); result
done

test_case 'kiln-lod --force makes all of it again' && (
    spoil spoiled.db 'visibility of ' '' visibility
    must 70 kiln lod spoiled.db --force
    must 0 kiln lod spoiled.db --force
    must 0 kiln verify spoiled.db
    same one.db spoiled.db
); result

test_case 'units of other options are no damage' && (
    cp one.db options.db
    lod options.db --views 3
    lod options.db --views 32
); result
