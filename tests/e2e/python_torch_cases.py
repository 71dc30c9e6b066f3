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


# What gsplat's rasterization asks of its arguments; its picture has the means' and the colours' gradients.
RASTERIZATION = """
import torch

def rasterization(means, quats, scales, opacities, colors, viewmats, Ks, width, height, sh_degree):
    n, k = len(means), (sh_degree + 1) ** 2
    shapes = {"means": (n, 3), "quats": (n, 4), "scales": (n, 3), "opacities": (n,), "colors": (n, k, 3), "viewmats": (1, 4, 4), "Ks": (1, 3, 3)}
    for name, shape in shapes.items():
        tensor = locals()[name]
        assert tensor.shape == shape and tensor.dtype == torch.float32, f"{name}: {tuple(tensor.shape)} {tensor.dtype}, not {shape}"
    assert n == 500 and bool((scales > 0).all()) and bool((opacities <= 1).all())
    parts = means.mean(0) + scales.mean(0) + colors.mean((0, 1)) + quats.mean() + opacities.mean()
    return parts.expand(1, height, width, 3), torch.ones(1, height, width, 1), {}
"""


def train_from_points(manifest, folder):
    import os
    import subprocess

    import numpy
    import splatkiln

    with open(folder + "/gsplat.py", "w") as f:
        f.write(RASTERIZATION)
    with splatkiln.open(manifest) as bake:
        start = bake.layer("initial").all_planes("log_scales")
        for name in list(bake.cameras)[:2]:
            size = bake.cameras[name].height, bake.cameras[name].width, 3
            numpy.save(f"{folder}/{name}.npy", numpy.random.default_rng(1).random(size, numpy.float32))
    out = subprocess.run([sys.executable, "examples/python/train_from_points.py", manifest, folder, folder + "/trained.npz", "--iterations=3", "--device=cpu"],
                         env=os.environ | {"PYTHONPATH": f"{folder}:{os.environ['PYTHONPATH']}"}, capture_output=True, text=True)
    assert out.returncode == 0 and f"{folder}/trained.npz: 500 Gaussians, loss 0." in out.stdout, out.stdout + out.stderr
    trained = splatkiln.read(folder + "/trained.npz")
    moved = numpy.abs(trained.log_scales - start.T)
    assert len(trained) == 500 and 0 < moved.max() < 0.1, moved.max()


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
