#!/bin/bash
# Gaussians as trainers and converters leave them: of many moments, activated, with one scale, with colours in place of f_dc, with
# more columns than are kept; cameras that are not numbers.
. tests/e2e/lib.sh
command -v python3 >/dev/null || skip "no python3 to write files with"
python3 tests/e2e/dialects.py "$KILN_TMP" || fail 'no files'
cd "$KILN_TMP" || exit 1
says() { grep -qE -- "$1" "$2" || fail "no '$1' in $2: $(cat "$2")"; }
silent() { grep -qE -- "$1" "$2" && fail "'$1' in $2: $(cat "$2")"; return 0; }
import() { must 0 "$KILN_BIN/kiln-import" "$@"; }
properties() { sed '/end_header/q' "$1" | grep -a ^property | cut -d' ' -f3 | paste -sd' '; }
chunked() { must 0 kiln knn "$1.db" && must 0 kiln chunk "$1.db" --layer source; }

test_case 'Gaussians of many moments need --static' && (
    for f in times times2; do
        must 3 kiln import $f.ply x.db && says 'come, move and go with time \([0-9]+ columns: [a-z_0-9, .]*\).*--static' err
        [ ! -e x.db ] || fail "$f left a manifest"
    done
    import times.ply static.db --static && says '--static: Gaussians of all moments are drawn at once; 11 columns of time' err
    import times.ply static.db && says 'nothing to do' err # the option is stored
    import plain.ply plain.db --static && silent 'moments' err
); result

test_case 'activated values' && (
    import activated.ply raw.db
    says 'of 300 rows all opacities are 0\.0[0-9]* to 0\.9[0-9]*, all scales 0\.0[0-9]* to 0\.3[0-9]*, and lengths of quaternions are 1 to 1;.*--activated' err
    for f in plain unsure; do import $f.ply $f.db --force && silent activated err; done
    import activated.ply logs.db --activated && silent 'look activated' err
    must 0 kiln export logs.db --layer source -o logs.ply
    py logarithms || fail 'logarithms are not those of the file that was activated'
); result

test_case 'one scale for all axes' && (
    import one_scale.ply one.db && import one_scale_in_three.ply three.db
    must 0 kiln export one.db --layer source -o one.ply && cmp one.ply one_scale.ply || fail 'one scale does not come out as it was'
    for db in one three; do chunked $db && must 0 kiln export $db.db --columns inria -o $db.inria.ply; done
    cmp one.inria.ply three.inria.ply || fail 'one scale is not three of them'
    must 0 kiln export one.db -o later.ply
    [ "$(properties later.ply | grep -o 'scale_[0-9]' | paste -sd' ')" = 'scale_0 scale_1 scale_2' ] ||
        fail "a later layer: $(properties later.ply)"
); result

test_case 'colours in place of f_dc' && (
    import rgb.ply rgb.db && must 0 kiln export rgb.db --layer source -o rgb.source.ply && cmp rgb.source.ply rgb.ply ||
        fail 'colours do not come out as they were'
    chunked rgb && must 0 kiln export rgb.db -o rgb.later.ply
    properties rgb.later.ply | grep -q 'f_dc_0 f_dc_1 f_dc_2 red green blue' || fail "a later layer: $(properties rgb.later.ply)"
    import rgb.later.ply rgb2.db && silent 'missing' err
); result

test_case 'more columns than are kept' && (
    must 3 kiln import many.ply x.db && says 'more than 256 columns .*--extra none' err
    import many.ply many.db --extra none && says '300 columns of unknown meaning are left out' err
    must 0 kiln export many.db --layer source -o many.out.ply
    properties many.out.ply | grep -q 'rot_3 nx ny nz$' || fail "normals stay, others go: $(properties many.out.ply)"
    import few.ply few.db && chunked few && must 0 "$KILN_BIN/kiln-export" few.db --format splat,csv,ply -o few.d/
    says "scene.splat': .*1 column of unknown meaning is left out: label" err
    says "scene.csv': .*1 column of unknown meaning is left out: label" err
    silent "scene.ply': .*left out" err
); result

test_case 'cameras that are not numbers' && (
    import model m.db
    says '2 of 20 images are left out: camera 2 has a parameter that is not a number \(.v03.png., .v07.png.\)' err
    says '18 cameras' err
    must 0 kiln import model m.db --list && says '^drops +images +2 of 20: their camera holds values that are not numbers' out
    says 'EQUIRECTANGULAR' out
    must 3 kiln import small x.db
    says "cameras.txt': camera 2 has a parameter that is not a number; this affects 1 of 5 images \('v03.png'\), more than a tenth" err
); result
