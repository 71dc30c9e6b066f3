#!/bin/bash
# kiln-render --fast without a GPU: refused in a sentence before anything is drawn, and never taken for, or from, exact pictures.
# What it draws on a GPU: tests/gpu/fast_render.t.
. tests/e2e/lib.sh
export CUDA_VISIBLE_DEVICES=
scene "$KILN_TMP/s" 3000 2 96x64
mkdir "$KILN_TMP/m" && db=$KILN_TMP/m/manifest.db
bake "$KILN_TMP/s" "$db" --max 1024
exact=$(digest "$db")

test_case '--fast on the CPU' && (
    must 2 kiln render "$db" --fast --devices cpu
    grep -q -- '--no-fast' "$KILN_TMP/err" || fail "$(cat "$KILN_TMP/err")"
); result

test_case '--fast without a GPU' && (
    must 6 kiln render "$db" --fast
    grep -q 'GPU' "$KILN_TMP/err" && grep -q -- '--no-fast' "$KILN_TMP/err" || fail "$(cat "$KILN_TMP/err")"
); result

test_case '--fast without a GPU draws nothing and changes nothing' && (
    must 6 kiln render "$db" --fast --camera cam0 -o "$KILN_TMP/x.png"
    [ ! -e "$KILN_TMP/x.png" ] || fail '--fast without a GPU wrote a picture'
    [ "$(digest "$db")" = "$exact" ] || fail 'a run that was refused changed something'
); result

test_case 'a run that was refused has stored no --fast' && (
    "$KILN_BIN/kiln-render" "$db" 2>&1 | grep -q 'nothing to do' || fail 'an exact run behind it drew something'
); result
