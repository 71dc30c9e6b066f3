"""What tests/e2e/python_files.t checks: python_files.py SCENE FOLDER formats|edits|refusals|operations."""
import pathlib
import sys

import numpy as np

import splatkiln
from splatkiln import BakeError

scene, folder = sys.argv[1], pathlib.Path(sys.argv[2])
NAMES = ("means", "log_scales", "quats", "opacity_logits", "sh0", "shN")


def fail(ok, what):
    if not ok:
        sys.exit(f"FAIL: {what}")


def same(a, b):
    return len(a) == len(b) and all(np.array_equal(getattr(a, n), getattr(b, n)) for n in NAMES) and a.extra.keys() == b.extra.keys()


def refused(what, call, *args, error=BakeError):
    try:
        call(*args)
    except error as e:
        fail(len(str(e)) > 10, f"{what}: refused without a sentence")
        return
    fail(False, f"{what} is taken")


def check_formats(splats):
    fail(len(splats) == 2000 and splats.sh_degree == 3 and splats.means.dtype == np.float32, "the scene")
    for name in ("same.ply", "same.npz"):
        splatkiln.write(folder / name, splats)
        fail(same(splatkiln.read(folder / name), splats), f"{name} holds other Gaussians")
    for name, degree in (("x.spz", 3), ("x.glb", 3), ("x.sog", 3), ("x.splat", 0), ("x.ksplat", 2), ("x.compressed.ply", 3)):
        splatkiln.write(folder / name, splats)
        again = splatkiln.read(folder / name)
        fail(len(again) == 2000 and again.sh_degree == degree and abs(np.sort(again.means[:, 0]) - np.sort(splats.means[:, 0])).max() < 0.1, f"{name}: other Gaussians")
    splatkiln.write(folder / "spz4", splats, format="spz4")
    fail((folder / "spz4").read_bytes()[:4] == b"NGSP", "format= is not heeded")
    splatkiln.write(folder / "few.ply", splats, options=["--sh-degree=1"])
    fail(splatkiln.read(folder / "few.ply").shN.shape == (2000, 3, 3), "options are not heeded")


def check_edits(splats):
    few = splats[splats.opacity_logits > np.median(splats.opacity_logits)]
    few.extra["label"] = np.arange(len(few), dtype=np.uint8)
    few.means = few.means.astype(np.float64) + 1 / 3
    splatkiln.write(folder / "few.ply", few)
    again = splatkiln.read(folder / "few.ply")
    fail(again.means.dtype == np.float64 and np.array_equal(again.means, few.means) and np.array_equal(again.extra["label"], few.extra["label"]), "an edited scene")
    g = few.activated()
    fail(g.sh.shape == (len(few), 16, 3) and np.allclose(np.linalg.norm(g.quats, axis=1), 1, atol=1e-6) and (0 < g.opacities).all(), "activated")


def check_refusals(splats):
    splatkiln.write(folder / "same.ply", splats)
    splatkiln.write(folder / "same.npz", splats)
    refused("a file that is not there", splatkiln.read, folder / "none.ply")
    (folder / "no.ply").write_bytes((folder / "same.ply").read_bytes()[:5000])
    refused("a cut PLY", splatkiln.read, folder / "no.ply")
    (folder / "no.npz").write_bytes((folder / "same.npz").read_bytes()[:5000])
    refused("a cut .npz", splatkiln.read, folder / "no.npz")
    np.save(open(folder / "no.npz", "wb"), np.zeros(4))
    refused("an array named .npz", splatkiln.read, folder / "no.npz")
    np.savez(folder / "no.npz", means=np.array([print, 1], object))
    refused("an .npz of objects", splatkiln.read, folder / "no.npz")
    np.savez(folder / "no.npz", **{**splatkiln.checkpoint(splats), "quats": np.zeros((3, 4), np.float32)})
    refused("an .npz whose shapes differ", splatkiln.read, folder / "no.npz")
    bad = splats[:5]
    bad.means = bad.means.copy()
    bad.means[2, 1] = np.nan
    refused("NaN", splatkiln.write, folder / "no.ply", bad)
    bad = splats[:5]
    bad.shN = bad.shN[:, :7]
    refused("seven coefficients", splatkiln.write, folder / "no.ply", bad)
    refused("no format", splatkiln.write, folder / "no.xyz", splats)
    refused("a bake that is a PLY", splatkiln.open, folder / "same.ply")


def check_operations(splats):
    points = splats.means[:400]
    d = ((points[:, None].astype(np.float64) - points[None]) ** 2).sum(-1)
    np.fill_diagonal(d, np.inf)
    want = np.sort(d, axis=1)[:, :3].mean(1)
    fail(np.allclose(splatkiln.distCUDA2(points), want, rtol=1e-5, atol=0), "distCUDA2")
    fail(np.array_equal(splatkiln.distCUDA2(np.asfortranarray(points)), splatkiln.distCUDA2(points)), "distCUDA2 of strides")
    rng = np.random.default_rng(1)
    b = rng.random((2, 3, 20, 30), np.float32)
    a = b + rng.normal(0, 0.2, b.shape).astype(np.float32)
    value, gradient = splatkiln.ssim_gradient(a, b)
    fail(value == float(splatkiln.fused_ssim(a, b)) and 0 < value < 1 and gradient.shape == a.shape, "fused_ssim")
    step = np.zeros_like(a)
    step[1, 2, 7, 11] = 0.02
    slope = (float(splatkiln.fused_ssim(a + step, b)) - float(splatkiln.fused_ssim(a - step, b))) / 0.04
    fail(abs(slope - gradient[1, 2, 7, 11]) < 0.05 * abs(gradient).max(), f"the gradient is {gradient[1, 2, 7, 11]}, differences say {slope}")
    picture = a[0].transpose(1, 2, 0)
    m = splatkiln.psnr_ssim(picture, b[0].transpose(1, 2, 0))
    fail(abs(m["psnr"] + 10 * np.log10(((picture.clip(0, 1) - b[0].transpose(1, 2, 0)).astype(np.float64) ** 2).mean())) < 1e-4, "psnr_ssim")
    refused("doubles", splatkiln.distCUDA2, points.astype(np.float64), error=TypeError)
    refused("points of two numbers", splatkiln.distCUDA2, points[:, :2], error=ValueError)
    refused("a list", splatkiln.distCUDA2, points.tolist(), error=TypeError)
    refused("two shapes", splatkiln.fused_ssim, a, b[:1], error=ValueError)


splats = splatkiln.read(scene)
globals()[f"check_{sys.argv[3]}"](splats)
