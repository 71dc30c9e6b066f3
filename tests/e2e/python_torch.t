#!/bin/bash
# python/splatkiln with PyTorch on the CPU: distCUDA2 and fused_ssim give the definitions' values and gradients, by the names under which
# trainers import them, in a training loop; a bake's tensors; gsplat's checkpoint as .pt. tests/gpu/python.t asks the same of GPUs.
. tests/e2e/lib.sh
python3 -c 'import numpy, torch' 2>"$KILN_TMP/why" || skip "$(tail -1 "$KILN_TMP/why")"
O=${KILN_BIN%/bin}
env -u CUDA -u CUDA_ARCHS make -s O="$O" lib >"$KILN_TMP/make" 2>&1 || { cat "$KILN_TMP/make"; fail "make lib"; }
SPLATKILN_LIBRARY=$(realpath "$O/libsplatkiln.so.1") SPLATKILN_BIN=$(realpath "$KILN_BIN")
export SPLATKILN_LIBRARY SPLATKILN_BIN PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$PWD/python${PYTHONPATH:+:$PYTHONPATH}
python3 tests/e2e/python_torch.py checks cpu || fail "checks"
python3 tests/e2e/python_torch.py train cpu 300 || fail "train"

scene "$KILN_TMP/s" 2000 2 64x48
db=$KILN_TMP/manifest.db
kiln import "$KILN_TMP/s" "$db" >/dev/null && kiln knn "$db" >/dev/null && kiln prune "$db" >/dev/null && kiln chunk "$db" >/dev/null && kiln tiles "$db" >/dev/null || fail "bake"
python3 - "$db" "$KILN_TMP" <<'P' || fail "tensors"
import sys, numpy, torch, splatkiln
with splatkiln.open(sys.argv[1]) as bake:
    host, t, table = bake.tensors(), bake.tensors("cpu"), bake.tile_table("cam1")
    for name in ("means", "quats", "scales", "opacities", "colors", "viewmats", "Ks"):
        tensor = getattr(t, name)
        assert tensor.dtype == torch.float32 and numpy.array_equal(tensor.numpy(), getattr(host, name)), name
    offsets, ids = t.isect(table)
    assert offsets.dtype == ids.dtype == torch.int32 and torch.equal(ids, t.rows(table)[table.flatten_ids].int())
splats = splatkiln.read(sys.argv[2] + "/s")
splatkiln.write(sys.argv[2] + "/x.pt", splats)
saved = torch.load(sys.argv[2] + "/x.pt")["splats"]
assert saved["sh0"].shape == (2000, 1, 3) and saved["scales"].dtype == torch.float32
again = splatkiln.read(sys.argv[2] + "/x.pt")
assert all(numpy.array_equal(getattr(again, n), getattr(splats, n)) for n in ("means", "log_scales", "quats", "opacity_logits", "sh0", "shN"))

class Evil:
    def __reduce__(self):
        return print, ("a pickle ran",)
torch.save({"splats": Evil()}, sys.argv[2] + "/evil.pt")
try:
    splatkiln.read(sys.argv[2] + "/evil.pt")
except splatkiln.BakeError:
    sys.exit(0)
sys.exit("a pickle that runs something is read")
P
