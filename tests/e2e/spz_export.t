#!/bin/bash
# What kiln-export writes as SPZ, versions 3 and 4: every value within half a step, in both frames and all degrees; what was read
# from an SPZ comes out with its codes; the same bytes whatever packs them; what does not fit is refused or counted.
steps="python3 $PWD/tests/e2e/spz_steps.py"
. tests/e2e/lib.sh
command -v python3 >/dev/null || skip "no python3"
cd "$KILN_TMP" || exit 1

for degree in 0 1 2 3 4; do
    test_step "degree $degree there and back, in both frames and versions" && (
        $steps make "$degree.ply" $degree 1500 || fail 'cannot write the scene'
        kiln import $degree.ply $degree.db >/dev/null || fail "import of degree $degree"
        for frame in rub as-is; do
            for format in spz spz4; do
                to=$degree-$format-$frame
                must 0 kiln export $degree.db --layer source --format $format --frame $frame -o "$to.spz"
                [ ! -s err ] || fail "a scene that fits is warned of: $(cat err)"
                must 0 kiln import "$to.spz" "$to.db" --frame $frame
                must 0 kiln export "$to.db" --layer source -o "$to.ply"
                $steps near $degree.ply "$to.ply" $degree || fail "$to is not near"
                must 0 kiln export "$to.db" --layer source --format $format --frame $frame -w -o again.spz
                cmp "$to.spz" again.spz || fail "$to there and back is another file"
            done
            same $degree-spz-$frame.db $degree-spz4-$frame.db
        done
        ! cmp -s $degree-spz-rub.spz $degree-spz-as-is.spz || fail '--frame changes nothing'
    ); result
done

test_case 'as-is is not RUB' && (
    kiln import 3-spz-as-is.spz rub.db >/dev/null && [ "$(digest rub.db)" != "$(digest 3-spz-as-is.db)" ] || fail 'as-is is RUB'
); result

test_case '--spz-version chooses among the formats, and contradicts none' && (
    must 0 kiln export 3.db --layer source --spz-version 4 -o v4.spz
    cmp 3-spz4-rub.spz v4.spz || fail '-o: not version 4'
    must 0 kiln export 3.db --layer source --spz-version 3 -o v3.spz
    cmp 3-spz-rub.spz v3.spz || fail '-o: not version 3'
    mkdir stored && cp 3.db stored/
    must 0 kiln export stored/3.db --layer source --spz-version 4 --format spz,splat,spz4
    [ "$(ls stored/export)" = $'scene.splat\nscene.v4.spz' ] || fail "a list: $(ls stored/export)"
    "$KILN_BIN/kiln-export" stored/3.db 2>&1 | grep -q 'nothing to do' || fail 'written again'
    must 0 kiln export stored/3.db -o v4.ply # a stored version is of another file
    must 0 kiln export stored/3.db --format spz,spz4 --spz-version 3 -o stored/
    cmp 3-spz-rub.spz stored/scene.spz && cmp 3-spz4-rub.spz stored/scene.v4.spz || fail 'both'
    must 2 kiln export 3.db --layer source --spz-version 4 -o v4.ply -w
    grep -q 'spz-version is for the format spz alone' err || fail "of a PLY: $(cat err)"
    must 2 kiln export 3.db --layer source --spz-version 3 --format spz4 -o v4.spz -w
    grep -q 'format spz4 and --spz-version 3 are two versions' err || fail "two versions: $(cat err)"
    must 0 "$KILN_BIN/kiln" convert --quiet 3.ply --spz-version 4 c4.spz
    cmp 3-spz4-rub.spz c4.spz || fail 'kiln convert: not version 4'
    "$KILN_BIN/kiln" convert --quiet 3.ply --format spz --spz-version 4 - >s4.spz || fail 'kiln convert to standard output'
    cmp 3-spz4-rub.spz s4.spz || fail 'kiln convert to standard output: not version 4'
    must 2 "$KILN_BIN/kiln" convert --quiet 3.ply --spz-version 4 c4.sog
); result

test_case 'helps say which readers take which version' && (
    must 0 "$KILN_BIN/kiln-export" --list-formats
    grep -q '^spz .*version 3.*Spark, Babylon, three.js and CesiumJS' out || fail "$(grep ^spz out)"
    grep -q '^spz4 .*version 4.*engine of PlayCanvas' out || fail "$(grep ^spz out)"
    for program in "$KILN_BIN/kiln-export" "$KILN_BIN/kiln convert"; do
        must 0 $program --help-all
        tr -s ' \n' ' ' <out | grep -q 'engine of PlayCanvas, which reads no other' || fail "$program: $(grep -A 4 spz-version out)"
    done
); result

test_case 'the bytes of version 3' && (
    $steps planes 3-spz-rub.spz >planes || fail 'version 3 is no gzip stream'
    [ "$(head -c 16 planes | od -An -tx1 | tr -d ' ')" = 4e47535003000000dc050000030c0000 ] ||
        fail "header: $(head -c 16 planes | od -An -tx1)"
    [ "$(wc -c <planes)" = $((16 + 65 * 1500)) ] || fail "planes have $(wc -c <planes) bytes"
); result

test_case 'the header of version 4' && (
    [ "$(head -c 20 3-spz4-rub.spz | od -An -tx1 | tr -d ' \n')" = 4e47535004000000dc050000030c000620000000 ] ||
        fail "version 4: $(head -c 20 3-spz4-rub.spz | od -An -tx1)"
    [ "$(head -c 16 0-spz4-rub.spz | od -An -tx1 | tr -d ' \n')" = 4e47535004000000dc050000000c0005 ] || fail 'version 4, degree 0'
); result

test_case 'a list of both versions' && (
    must 0 kiln export 3.db --layer source --format spz,spz4 -o both/
    cmp both/scene.spz 3-spz-rub.spz && cmp both/scene.v4.spz 3-spz4-rub.spz || fail 'a list of both versions'
); result

test_case 'the axes are said' && (
    must 0 "$KILN_BIN/kiln-export" 3.db --layer source -o said.spz && grep -q 'are RUB (right, up, back)' err ||
        fail "which axes: $(cat err)"
); result

# chunks, threads, memory
scene s 30000 1 32x32
kiln import s s.db >/dev/null && kiln knn s.db >/dev/null && kiln chunk s.db --layer source --max 4000 >/dev/null || fail 'chunk'
for format in spz spz4; do
    test_step "$format: the same bytes whatever packs them, and its loss" && (
        must 0 kiln export s.db --format $format -w -o all.spz --threads 4
        for how in '--threads 1' '--ram 90M' '--threads 3 --workers 3'; do
            must 0 kiln export s.db --format $format -w -o again.spz $how
            cmp all.spz again.spz || fail "$format has other bytes with $how"
        done
        must 0 kiln import all.spz $format.db
        must 0 "$KILN_BIN/kiln-export" s.db --format $format -w -o again.spz --report-loss 1 --min-psnr 25
        grep -qE "camera '.*' [0-9.]+ dB" err && cmp all.spz again.spz || fail "$format: its loss: $(cat err)"
    ); result
done

test_case 'both versions are the same scene' && (
    same spz.db spz4.db
); result

test_case 'harmonics that are alike in rows far apart' && (
    py alike >alike.ply
    kiln import alike.ply alike.db >/dev/null || fail 'import of alike.ply'
    must 0 kiln export alike.db --layer source -o alike.spz
    $steps planes alike.spz | py smaller "$(stat -c %s alike.spz)" || fail "alike.spz has $(stat -c %s alike.spz) bytes"
); result

# codes of files that others made
for sample in ${KILN_SHARED:+"$KILN_SHARED"/samples/golden_spz_v[34]_sh?.spz}; do
    [ -e "$sample" ] || continue

    test_case "codes of ${sample##*/}" && (
        rm -rf golden.db* again.db*
        must 0 kiln import "$sample" golden.db
        must 0 kiln export golden.db --layer source -w -o again.spz
        $steps planes again.spz >planes || fail "of $sample"
        case $sample in
        *_v3_*) $steps planes "$sample" >theirs && cmp theirs planes || fail "other codes than $sample" ;;
        *) must 0 kiln import again.spz again.db && same golden.db again.db ;;
        esac
    ); result
done

# what does not fit
edited() { # FILE ROW COLUMN VALUE...: of 3.ply
    py edit "$@" || fail 'cannot edit'
    rm -rf edited.db*
    kiln import "$1" edited.db >/dev/null || fail "import of $1"
}
for format in spz spz4; do
    test_case "$format: a coordinate that is too far" && (
        edited far.ply 7 1 1e6
        must 3 kiln export edited.db --layer source --format $format -o no.spz
        grep -q '24 bits for a coordinate: with one of 1e+06 its steps are 0.125 units' err && [ ! -e no.spz ] ||
            fail "far: $(cat err)"
    ); result

    test_case "$format: a coordinate that is far makes steps larger" && (
        edited farther.ply 7 1 3000
        must 0 "$KILN_BIN/kiln-export" edited.db --layer source --format $format -w -o farther.spz
        grep -q 'steps of 1/2048 instead of 1/4096, because they reach up to 3000' err || fail "farther: $(cat err)"
    ); result

    test_case "$format: values that do not fit are clamped and counted" && (
        edited clamped.ply 3 52 -11 3 53 7 9 54 6.5 4 20 1.5 5 3 9
        must 0 "$KILN_BIN/kiln-export" edited.db --layer source --format $format -w -o clamped.spz --json
        python3 -c 'import json
c = list(json.load(open("out"))["changed"].values())
assert c == [2, 1, 1], c' || fail "$(cat out)"
        grep -q "2 rows have log scales that were clamped to -10 .. 5.9375" err || fail "clamped: $(cat err)"
    ); result
done
# the box of the positions alone is no measure: one row, many at one place; what Gaussians are is asked
at() { # ROWS PLACE SCALE FAR: rows of different colours at one place, five of them FAR away
    py at_place "$@" && kiln import at.ply at.db --force >/dev/null || fail "import of $*"
}
for format in spz spz4; do
    for where in '1 1.44945 -5 0' '1 0 -5 0' '1000 3.25 -5 0' '500 -1000.5 -4 0'; do
        test_case "$format: rows, place, scale and floaters $where lie where they were" && (
            # shellcheck disable=SC2086
            at $where
            must 0 kiln export at.db --layer source --format $format -w -o at.spz
            must 0 kiln import at.spz atspz.db --force --frame rub
            must 0 kiln export atspz.db --layer source -w -o again.ply
            place=${where#* }
            py lies_at "${place%% *}" || fail "$format of '$where' lies elsewhere"
        ); result
    done
    for where in '1 100000 -9 0' '500 0.5 -4 9e6'; do
        test_case "$format: rows, place, scale and floaters $where are too coarse" && (
            # shellcheck disable=SC2086
            at $where
            must 3 kiln export at.db --layer source --format $format -o no.spz
            grep -q 'too coarse .* Gaussians of about .*--filter-box.*--translate' err && [ ! -e no.spz ] ||
                fail "$where: $(cat err)"
        ); result
    done
done

test_case 'no temporary file is left' && (
    [ -z "$(find . -name '*.tmp.*')" ] || fail 'a temporary file was left'
); result
