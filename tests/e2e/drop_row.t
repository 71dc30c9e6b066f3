#!/bin/bash
# Dropping one Gaussian changes chunks under one parent cell only, and only tables of cameras that see them.
. tests/e2e/lib.sh
command -v python3 >/dev/null || skip "no python3 to look into the manifest with"
scene "$KILN_TMP/s" 20000 3 160x120
bake "$KILN_TMP/s" "$KILN_TMP/x.db" --max 512

test_case 'dropping one Gaussian changes chunks under one parent cell, and tables of cameras that see them' && (
    python3 tests/e2e/drop_row.py "$KILN_BIN" "$KILN_TMP/x.db" "${DROPS:-8}" "${SEED:-1}" || fail "see above"
); result
