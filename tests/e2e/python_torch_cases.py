"""The python of tests/e2e/python_torch.t: `py FUNCTION [argument...]` of tests/cases.sh calls one of these."""
import sys


def tensors(manifest):
    import numpy
    import splatkiln
    import torch

    with splatkiln.open(manifest) as bake:
        host, t, table = bake.tensors(), bake.tensors("cpu"), bake.tile_table("cam1")
        for name in ("means", "quats", "scales", "opacities", "colors", "viewmats", "Ks"):
            tensor = getattr(t, name)
            assert tensor.dtype == torch.float32 and numpy.array_equal(tensor.numpy(), getattr(host, name)), name
        offsets, ids = t.isect(table)
        assert offsets.dtype == ids.dtype == torch.int32 and torch.equal(ids, t.rows(table)[table.flatten_ids].int())


class Evil:
    def __reduce__(self):
        return print, ("a pickle ran",)


def checkpoint(scene, folder):
    import numpy
    import splatkiln
    import torch

    splats = splatkiln.read(scene)
    splatkiln.write(folder + "/x.pt", splats)
    saved = torch.load(folder + "/x.pt")["splats"]
    assert saved["sh0"].shape == (2000, 1, 3) and saved["scales"].dtype == torch.float32
    again = splatkiln.read(folder + "/x.pt")
    for name in ("means", "log_scales", "quats", "opacity_logits", "sh0", "shN"):
        assert numpy.array_equal(getattr(again, name), getattr(splats, name)), name
    torch.save({"splats": Evil()}, folder + "/evil.pt")
    try:
        splatkiln.read(folder + "/evil.pt")
    except splatkiln.BakeError:
        return
    sys.exit("a pickle that runs something is read")


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
