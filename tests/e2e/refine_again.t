#!/bin/bash
# kiln-lod --refine of a scene in which one Gaussian has moved: only its chunk and the chunks that drew it are refined again, only
# its chunk and the cells above are merged again. Killed ten times, it goes on with what was stored and has the digest of a run in
# one go.
# starts first
. tests/e2e/lib.sh
cd "$KILN_TMP" || exit 1
number() { python3 -c 'import json, sys; d = json.load(open(sys.argv[1])); print(eval(sys.argv[2], {}, {"d": d}))' "$1" "$2"; }
chunked() {
    kiln import "$1" "$2" >/dev/null && kiln knn "$2" >/dev/null && kiln chunk "$2" --layer source --max 96 >/dev/null ||
        fail "bake of $1"
}
lod() { must 0 kiln lod "$1" --levels 1 --coarsest 96 --visibility off --refine 2 --devices cpu --json "${@:2}"; }

kiln generate demo s --gaussians 1500 --cameras 3 --size 48x36 >/dev/null || fail "generate"
chunked s base.db
cp base.db one.db
lod one.db --threads 1

test_step 'one Gaussian moved: its chunk and those that drew it are refined again' && (
    cp -r s moved
    edit_ply moved/scene.ply x 700 'v + 0.0005'
    cp one.db moved.db
    chunked moved moved.db
    lod moved.db
    cp out moved.json
    py units one.db moved.db moved.json || fail "other units were computed than those that the Gaussian is in"
); result

test_case 'the moved scene refined anew is the same' && (
    cp base.db anew.db
    chunked moved anew.db
    lod anew.db
    same anew.db moved.db
); result

test_case 'killed ten times it goes on with what was stored' && (
    # In ten units of both lists, in the order in which one worker computes them, so that each run gets further than the one before.
    # A run is killed when it hangs in its unit and has stored all units before it: never earlier or later, however fast the machine
    # is.
    cp base.db killed.db
    sqlite3 one.db "SELECT name, (SELECT count(*) FROM unit b WHERE b.stage = 'lod' AND b.id < u.id) FROM unit u WHERE stage = 'lod' AND
    (name LIKE 'chunk %' OR name LIKE 'refine %') ORDER BY id" | awk 'NR % 9 == 5' | head -10 >units
    [ "$(wc -l <units)" = 10 ] && grep -q chunk units && grep -q refine units || fail "not ten units: $(cat units)"
    while IFS='|' read -r unit before; do
        killed_when_stored killed.db lod "$before" env KILN_FAULT="unit=$unit:hang" "$KILN_BIN/kiln-lod" killed.db --quiet \
            --levels 1 --coarsest 96 --visibility off --refine 2 --devices cpu --threads 1 &&
            code=0 ||
            code=$?
        [ $code = 137 ] || fail "the run that hangs in '$unit' ended with $code"
        [ "$(stored killed.db lod)" = "$before" ] || fail "$(stored killed.db lod) units are stored, not the $before before '$unit'"
        must 0 kiln verify killed.db
    done <units
    lod killed.db
    [ "$(number out 'd["units"]["cached"]')" -gt 40 ] ||
        fail "little was kept of the runs that were killed: $(number out 'd["units"]')"
    same one.db killed.db
); result
