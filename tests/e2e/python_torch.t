#!/bin/bash
# python/splatkiln with PyTorch on the CPU: distCUDA2 and fused_ssim give the definitions' values and gradients, by the names under which
# trainers import them, in a training loop; a bake's tensors; gsplat's checkpoint as .pt. tests/gpu/python.t asks the same of GPUs.
# starts first
. tests/e2e/lib.sh
python3 -c 'import numpy, torch' 2>"$KILN_TMP/why" || skip "$(tail -1 "$KILN_TMP/why")"
O=${KILN_BIN%/bin}
env -u CUDA -u CUDA_ARCHS make -s O="$KILN_MAKE_O" lib >"$KILN_TMP/make" 2>&1 || { cat "$KILN_TMP/make"; fail "make lib"; }
SPLATKILN_LIBRARY=$(realpath "$O/libsplatkiln.so.1") SPLATKILN_BIN=$(realpath "$KILN_BIN")
export SPLATKILN_LIBRARY SPLATKILN_BIN PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$PWD/python${PYTHONPATH:+:$PYTHONPATH}

test_case 'values, gradients, strides, refusals, the names that trainers import' && (
    python3 tests/e2e/python_torch.py checks cpu || fail "checks"
); result

test_case 'a training loop with both drop-ins' && (
    python3 tests/e2e/python_torch.py train cpu 300 || fail "train"
); result

scene "$KILN_TMP/s" 2000 2 64x48
db=$KILN_TMP/manifest.db

test_case 'a bake as tensors, with tile lists' && (
    kiln import "$KILN_TMP/s" "$db" >/dev/null
    for stage in knn prune chunk tiles; do kiln $stage "$db" >/dev/null || fail "$stage"; done
    py tensors "$db" || fail "tensors"
); result

test_case "gsplat's checkpoint is written and read; one that runs something is refused" && (
    py checkpoint "$KILN_TMP/s" "$KILN_TMP" || fail "checkpoint"
); result

test_case "the example that trains from a bake's points gives gsplat what it asks for" && (
    kiln generate points "$KILN_TMP/points" --gaussians 500 >/dev/null || fail "generate"
    kiln import "$KILN_TMP/points" "$KILN_TMP/points.db" >/dev/null && kiln knn "$KILN_TMP/points.db" >/dev/null || fail "bake"
    mkdir "$KILN_TMP/train"
    py train_from_points "$KILN_TMP/points.db" "$KILN_TMP/train" || fail "train_from_points"
); result
