#!/usr/bin/env bash
# The unit tests that compare with the reference renderers, distCUDA2 and fused-ssim, and with more pairs than 32 bits count, once
# more, computed by the GPU.
set -u
tests/gpu/has_gpu || { echo 'SKIP: no GPU'; exit 77; }
export KILN_TEST_DEVICES=cuda
bad=0 skipped=0
for t in $(cat tests/gpu/units); do
    CMOCKA_MESSAGE_OUTPUT=TAP KILN_TEST='' KILN_TRUTH_VERBOSE=1 "$O/tests/unit/${t}_test" >"$KILN_TMP/out" 2>&1 || bad=1
    sed "s/^/$t: /" "$KILN_TMP/out"
    ! grep -q '# SKIP' "$KILN_TMP/out" || skipped=1
done
[ $bad = 0 ] || exit 1
[ $skipped = 0 ] || { echo 'SKIP: no reference data, or a case for KILN_THOROUGH; set KILN_SHARED'; exit 77; }
