#!/bin/bash
# python/splatkiln reads and writes scene files: a PLY bit by bit, other formats within their steps, gsplat's checkpoint, an edited bake
# (examples/python/edit_rows.py); what is damaged or does not fit is refused; distCUDA2 and fused_ssim of numpy arrays.
. tests/e2e/lib.sh
needs_numpy
O=${KILN_BIN%/bin} at=$KILN_TMP/at
env -u CUDA -u CUDA_ARCHS make -s O="$KILN_MAKE_O" lib >"$KILN_TMP/make" 2>&1 || { cat "$KILN_TMP/make"; fail "make lib"; }
SPLATKILN_LIBRARY=$(realpath "$O/libsplatkiln.so.1") SPLATKILN_BIN=$(realpath "$KILN_BIN")
export SPLATKILN_LIBRARY SPLATKILN_BIN PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$PWD/python TMPDIR=$KILN_TMP
mkdir "$at"
scene "$KILN_TMP/s" 2000 2 64x48

for what in formats edits refusals operations; do
    test_case "$what" && (
        python3 tests/e2e/python_files.py "$KILN_TMP/s" "$at" $what || fail "see above"
    ); result
done

test_case 'a process that is larger than the memory of kiln convert reads a scene' && (
    python3 -c 'import sys, splatkiln; large = bytearray(b"x") * (400 << 20); splatkiln.read(sys.argv[1])' "$KILN_TMP/s" ||
        fail "see above"
); result

test_case 'an example bakes, edits rows in numpy and writes a PLY' && (
    python3 examples/python/edit_rows.py "$KILN_TMP/s" "$at/edited.ply" >"$at/said" 2>&1 || { cat "$at/said"; fail "edit_rows.py"; }
    grep -q "^$at/edited.ply: [0-9]* Gaussians, SH degree 3" "$at/said" || fail "edit_rows.py says $(cat "$at/said")"
); result

test_case 'no scratch is left' && (
    [ -z "$(find "$KILN_TMP" -maxdepth 1 -name 'splatkiln-*')" ] || fail "$(find "$KILN_TMP" -maxdepth 1 -name 'splatkiln-*')"
); result
