#!/bin/bash
# --write-undistorted against image_undistorter of the COLMAP that is installed: the same PINHOLE cameras to 1e-9, photos equal to
# 45 dB, for models 0 to 10 (3.8 knows no others), weak and strong, with and without blank pixels.
# time-limit: 1800
. tests/e2e/lib.sh
command -v colmap >/dev/null || skip "no colmap to compare with"
command -v python3 >/dev/null || skip "no python3 to write models with"
root=$PWD
cd "$KILN_TMP" || exit 1
export QT_QPA_PLATFORM=offscreen
lens() { python3 "$root/tests/e2e/lens.py" "$@" || fail "lens.py $1"; }

# photos and cameras of 320 x 240 pixels, as PNG and a binary model of pinholes
kiln generate demo s --gaussians 3000 --cameras 2 --size 320x240 >/dev/null || fail generate
must 0 kiln import s none.db --write-undistorted base
[ -s base/sparse/cameras.bin ] || fail "no cameras"

compare() { # blank model terms...
    local blank=$1; shift
    rm -rf d ours theirs
    cp -r base d
    lens bend d/sparse/cameras.bin "$@"
    colmap image_undistorter --image_path d/images --input_path d/sparse --output_path theirs --output_type COLMAP --blank_pixels \
        "$blank" \
        >log 2>&1 || { tail -3 log; fail "colmap"; }
    must 0 kiln import d none.db --undistort-blank "$blank" --write-undistorted ours
    worst=$(lens cameras theirs/sparse/cameras.bin ours/sparse/cameras.bin) || fail "other cameras: $*"
    must 0 kiln compare theirs/images ours/images --json
    py photos "$worst" "blank $blank, model $*" || fail "other photos: $*"
}
undistorted() { # blank model terms...
    test_case "blank $1, model ${*:2}" && (
        compare "$@"
    ); result
}
undistorted 0 0
undistorted 0 1
undistorted 0 2 -0.1
undistorted 1 2 -0.2
undistorted 0 3 -0.2 0.1
undistorted 0 4 -0.1 0.02 0.001 -0.001
undistorted 0.4 4 -0.3 0.1 0.01 -0.02
undistorted 0 5 0.02 -0.01 0.003 -0.0005
undistorted 0.5 5 0.1 -0.1 0.03 -0.005
undistorted 0 6 0.1 0.02 0.001 -0.002 0.005 0.12 0.01 0.002
undistorted 0 7 0.5
undistorted 1 7 0.9
undistorted 0 8 0.02
undistorted 0 9 0.05 -0.01
undistorted 0 10 0.02 -0.01 0.001 -0.002 0.003 -0.0005 0.0007 -0.0009
