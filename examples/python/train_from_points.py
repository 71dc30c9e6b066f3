"""train_from_points -- starts Gaussians from a bake's points and trains them with gsplat: the scales are the distances that kiln-knn
stored, so nothing is searched.

    python3 train_from_points.py bake/manifest.db PHOTOS OUT.npz [--iterations 1000]

PHOTOS is the folder of the cameras' photos, as .npy float32 [height, width, 3] by the camera's name. Needs gsplat, and PyTorch with the
--device that is named; else it says what is missing and ends with 77. OUT is a checkpoint as gsplat keeps it.
"""
import argparse
import pathlib
import sys

import numpy as np

import splatkiln


def start(bake):
    """Gaussians of the layer that kiln-knn made for points: means, scales by neighbours' distance, colours."""
    layer = bake.layer("initial")
    planes = {name: layer.all_planes(name) for name in ("means", "log_scales", "quats", "opacity_logits", "sh0")}
    n, rest = planes["means"].shape[1], 15
    return splatkiln.Splats(*[np.ascontiguousarray(planes[name].T) for name in ("means", "log_scales", "quats", "opacity_logits", "sh0")],
                            np.zeros((n, rest, 3), np.float32))


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("manifest")
    p.add_argument("photos", type=pathlib.Path)
    p.add_argument("out")
    p.add_argument("--iterations", type=int, default=1000)
    p.add_argument("--device", default="cuda")
    a = p.parse_args()
    try:
        import gsplat
        import torch
    except ImportError as e:
        print(f"SKIP: {e}")
        return 77
    if a.device.startswith("cuda") and not torch.cuda.is_available():
        print("SKIP: PyTorch sees no GPU")
        return 77
    with splatkiln.open(a.manifest) as bake:
        splats = start(bake)
        names = [name for name in bake.cameras if (a.photos / f"{name}.npy").exists()]
        cameras = [bake.cameras[name] for name in names]
        viewmats = [torch.from_numpy(c.viewmat(bake.scene.origin)).float().to(a.device) for c in cameras]
    Ks = [torch.from_numpy(c.K).float().to(a.device) for c in cameras]
    photos = [torch.from_numpy(np.load(a.photos / f"{name}.npy")).to(a.device) for name in names]
    params = {k: torch.from_numpy(v).to(a.device).requires_grad_() for k, v in splatkiln.checkpoint(splats).items()}
    rates = {"means": 1.6e-4, "scales": 5e-3, "quats": 1e-3, "opacities": 5e-2, "sh0": 2.5e-3, "shN": 1.25e-4}
    adam = torch.optim.Adam([{"params": [v], "lr": rates[k]} for k, v in params.items()], eps=1e-15)
    for i in range(a.iterations):
        k = i % len(names)
        colors = torch.cat([params["sh0"], params["shN"]], 1)
        picture, _, _ = gsplat.rasterization(params["means"], params["quats"], params["scales"].exp(), params["opacities"].sigmoid(), colors,
                                             viewmats[k][None], Ks[k][None], cameras[k].width, cameras[k].height, sh_degree=3)
        ssim = splatkiln.fused_ssim(picture.permute(0, 3, 1, 2), photos[k][None].permute(0, 3, 1, 2))
        loss = 0.8 * (picture[0] - photos[k]).abs().mean() + 0.2 * (1 - ssim)
        adam.zero_grad()
        loss.backward()
        adam.step()
        if i % 100 == 0:
            print(f"{i}: {float(loss):.4f}")
    trained = {k: v.detach().cpu().numpy() for k, v in params.items()}
    splatkiln.write(a.out, splatkiln.Splats(trained["means"], trained["scales"], trained["quats"], trained["opacities"], trained["sh0"][:, 0], trained["shN"]))
    print(f"{a.out}: {len(trained['means'])} Gaussians, loss {float(loss):.4f}")
    return 0


sys.exit(main())
