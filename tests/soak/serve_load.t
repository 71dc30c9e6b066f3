#!/bin/bash
# kiln-serve with 2,000 connections at a time, and with clients that are slow: refused or served, never a crash or a hang.
. tests/e2e/lib.sh
command -v python3 >/dev/null || skip 'no python3'
export PYTHONDONTWRITEBYTECODE=1
T=$KILN_TMP
M=$T/demo/bake/manifest.db
must 0 kiln generate demo "$T/demo" --gaussians 60000 --cameras 5 --size 256x160
bake "$T/demo" "$M"
for check in 'many 2000' 'many 2000' slow; do
    read -r what n <<<"$check"
    python3 tests/e2e/serve.py "$what" "$KILN_BIN/kiln-serve" "$M" ${n:+"$n"} || fail "$check"
done
