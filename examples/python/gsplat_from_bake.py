"""gsplat_from_bake -- gsplat draws a bake from the tile tables that kiln-tiles stored, instead of finding tiles itself.

    python3 gsplat_from_bake.py bake/manifest.db [--camera NAME] [--reference PICTURE.npy] [--json FIGURES.json] [--min-psnr 85]

Needs a GPU, PyTorch and gsplat 1.5 (its CUDA extension included); else it says what is missing and ends with 77. The bake
needs tables of the profile that gsplat computes: kiln-tiles --profile gsplat-1.5.

It prints how alike the pictures are, and the time of each step:
  own      gsplat.rasterization: all Gaussians are projected, listed (isect_tiles, a sort of all pairs) and blended
  tables   the visible Gaussians of the table alone, in its depth order, are projected; the stored lists are given to
           gsplat.rasterize_to_pixels as isect_offsets and flatten_ids
  bake     the picture of libsplatkiln, or --reference of kiln-render (--profile gsplat-1.5 --format npy)
A stored list has exactly the Gaussians that can change a pixel of its tile, gsplat's own has more, and the picture is the same:
at least --min-psnr dB, or the exit code is 1.
"""
import argparse
import json
import statistics
import sys
import time
from types import SimpleNamespace

import numpy as np

import splatkiln
from splatkiln.errors import require


def load_gsplat():
    """torch and gsplat, or the reason why not."""
    try:
        import torch
    except ImportError as e:
        return None, None, f"no PyTorch: {e}"
    if not torch.cuda.is_available():
        return None, None, "PyTorch sees no GPU"
    try:
        import gsplat
        from gsplat.cuda._backend import _C  # compiled on first use
    except Exception as e:  # whatever the compiler says
        return None, None, f"no gsplat: {e}"
    if _C is None or not gsplat.__version__.startswith("1.5"):
        return None, None, f"gsplat 1.5 with its CUDA extension is needed, this is {gsplat.__version__}, extension {'missing' if _C is None else 'there'}"
    return torch, gsplat, ""


def gaussians(torch, bake, layer, device):
    """The tensors that gsplat.rasterization takes, relative to the scene's origin. In the order of the source, because gsplat draws
    Gaussians of equal depth in the order of their rows, and a table has them by source row. place [n]: row of these tensors for
    each row of the layer, chunk after chunk."""
    chunks = [c for c in layer.chunks if c.count]
    source_row = np.concatenate([layer.plane(c, "source_row") for c in chunks])
    order = np.argsort(source_row, kind="stable")
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    parts = [layer.gaussians(c) for c in chunks]
    join = lambda name: torch.from_numpy(np.concatenate([getattr(p, name) for p in parts])[order]).to(device)
    return SimpleNamespace(means=join("means"), quats=join("quats"), scales=join("scales"), opacities=join("opacities"), colors=join("sh"),
                           sh_degree=layer.sh_degree, place=place)


def camera_tensors(torch, bake, camera, table, device):
    viewmat = torch.from_numpy(camera.viewmat(bake.scene.origin)).float()[None].to(device)
    K = torch.from_numpy(camera.K).float()[None].to(device)
    return SimpleNamespace(viewmats=viewmat, Ks=K, width=camera.width, height=camera.height, near_plane=table.near,
                           campos=torch.inverse(viewmat)[:, :3, 3])


def decode_band(torch, table, index, device):
    """TileTable.band on the GPU: counts int64 [tiles of the band], ranks int64 [pairs]."""
    to = lambda a: torch.from_numpy(a).to(device)  # of arrays that may be written to, which PyTorch wants
    counts, sizes, code = table.band_codes(index)
    counts, sizes, code = to(counts.astype(np.int64)), to(sizes.astype(np.int64)), to(code.copy())
    if table.bands[index].pairs == 0:
        return counts, torch.zeros(0, dtype=torch.int64, device=device)
    zero = torch.zeros(1, dtype=torch.int64, device=device)
    behind = torch.cat([zero, torch.nonzero(code < 128).flatten() + 1])  # byte behind so many numbers
    require(len(behind) == table.bands[index].pairs + 1 and int(behind[-1]) == len(code), "the table's codes do not fit")
    length = behind[1:] - behind[:-1]
    most = int(length.max())
    require(most <= 5, "the table has a number of more than five bytes")
    delta = torch.zeros_like(length)
    for i in range(most):  # lowest seven bits first
        byte = code[(behind[:-1] + i).clamp_max(len(code) - 1)].long() & 127
        delta += torch.where(length > i, byte << (7 * i), torch.zeros_like(byte))
    stop = torch.cumsum(counts, 0)
    start = stop - counts
    total = torch.cat([zero, torch.cumsum(delta, 0)])
    ranks = total[1:] - torch.repeat_interleave(total[start], counts)
    delta[start[counts > 0]] = 1  # the first of a tile may be 0
    sound = (behind[stop] == torch.cumsum(sizes, 0)).all() & (delta > 0).all() & (ranks < table.visible).all()
    require(bool(sound), "the table has ranks that do not increase or are not there")
    return counts, ranks


def tile_tensors(torch, table, layer, place, device):
    """The stored lists as gsplat has them. rows [visible]: rows of the tensors of gaussians(), nearest first; flatten_ids index
    these. isect_offsets [1, tiles_y, tiles_x]: where the list of each tile begins."""
    require(table.pairs < 2**31, "gsplat's offsets have 31 bits, the table has more pairs")
    bands = [decode_band(torch, table, i, device) for i in range(len(table.bands))]
    counts, ranks = torch.cat([c for c, _ in bands]), torch.cat([r for _, r in bands])
    return SimpleNamespace(rows=torch.from_numpy(place[table.visible_rows(layer)]).to(device),
                           isect_offsets=(torch.cumsum(counts, 0) - counts).int().reshape(1, table.tiles_y, table.tiles_x), flatten_ids=ranks.int())


def draw_own(gsplat, g, c, antialiased):
    """As gsplat draws by itself: [height, width, 4], colours over black and alpha."""
    colors, alphas, meta = gsplat.rasterization(g.means, g.quats, g.scales, g.opacities, g.colors, c.viewmats, c.Ks, c.width, c.height,
                                                near_plane=c.near_plane, sh_degree=g.sh_degree, packed=False,
                                                rasterize_mode="antialiased" if antialiased else "classic")
    return colors[0], alphas[0], meta


def project(torch, gsplat, g, c, antialiased, rows=None):
    """What gsplat.rasterization does before it looks for tiles; of the rows alone that are given."""
    pick = (lambda a: a) if rows is None else (lambda a: a[rows])
    means, opacities = pick(g.means), pick(g.opacities)
    radii, means2d, depths, conics, compensations = gsplat.fully_fused_projection(
        means, None, pick(g.quats), pick(g.scales), c.viewmats, c.Ks, c.width, c.height, near_plane=c.near_plane,
        calc_compensations=antialiased, opacities=opacities)
    opacities = opacities[None] if compensations is None else opacities[None] * compensations
    seen = (radii > 0).all(dim=-1)
    colors = gsplat.spherical_harmonics(g.sh_degree, means[None] - c.campos[:, None], pick(g.colors)[None], masks=seen)
    # gsplat leaves what it culls undefined. It and the table may judge a Gaussian at the very border otherwise.
    gone = ~seen
    means2d, conics = means2d.masked_fill(gone[..., None], 0), conics.masked_fill(gone[..., None], 0)
    return means2d, conics, torch.clamp_min(colors + 0.5, 0).masked_fill(gone[..., None], 0), opacities.masked_fill(gone, 0), radii, depths


def draw_from_tables(torch, gsplat, g, c, antialiased, tiles):
    """From the stored lists: no isect_tiles, no sort, and only the visible Gaussians are projected."""
    means2d, conics, colors, opacities, _, _ = project(torch, gsplat, g, c, antialiased, tiles.rows)
    out, alphas = gsplat.rasterize_to_pixels(means2d, conics, colors, opacities, c.width, c.height, splatkiln.TILE, tiles.isect_offsets, tiles.flatten_ids)
    return out[0], alphas[0]


def decibels(a, b):
    """PSNR of values as they are (1 is white); inf when equal."""
    mse = float(((a.double() - b.double()) ** 2).mean())
    return float("inf") if mse == 0 else -10 * np.log10(mse)


def milliseconds(torch, f, runs=50):
    """Median time of f on the GPU, after ten runs to warm up."""
    times = []
    for i in range(10 + runs):
        start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        f()
        stop.record()
        torch.cuda.synchronize()
        if i >= 10:
            times.append(start.elapsed_time(stop))
    return statistics.median(times)


def steps(torch, gsplat, g, c, antialiased, tiles):
    """Times of the steps of both ways, in ms."""
    tx, ty = tiles.isect_offsets.shape[2], tiles.isect_offsets.shape[1]
    means2d, conics, colors, opacities, radii, depths = project(torch, gsplat, g, c, antialiased)

    def find_tiles():
        _, ids, flatten_ids = gsplat.isect_tiles(means2d, radii, depths, splatkiln.TILE, tx, ty)
        return gsplat.isect_offset_encode(ids, 1, tx, ty), flatten_ids

    own = find_tiles()
    few = project(torch, gsplat, g, c, antialiased, tiles.rows)[:4]
    time_of = lambda f: milliseconds(torch, f)
    return {"project all": time_of(lambda: project(torch, gsplat, g, c, antialiased)),
            "project visible": time_of(lambda: project(torch, gsplat, g, c, antialiased, tiles.rows)),
            "isect_tiles": time_of(find_tiles),
            "blend own lists": time_of(lambda: gsplat.rasterize_to_pixels(means2d, conics, colors, opacities, c.width, c.height, splatkiln.TILE, own[0].reshape(1, ty, tx), own[1])),
            "blend stored lists": time_of(lambda: gsplat.rasterize_to_pixels(*few, c.width, c.height, splatkiln.TILE, tiles.isect_offsets, tiles.flatten_ids)),
            "own": time_of(lambda: draw_own(gsplat, g, c, antialiased)),
            "tables": time_of(lambda: draw_from_tables(torch, gsplat, g, c, antialiased, tiles))}


def compare(torch, gsplat, bake, layer, g, table, reference=None):
    """One camera: {"camera", "pairs", "own_pairs", "psnr": {...}, "ms": {...}}."""
    camera = bake.cameras[table.camera]
    tile_tensors(torch, table, layer, g.place, g.means.device)  # what a process's first kernels cost is no part of the time below
    c = camera_tensors(torch, bake, camera, table, g.means.device)
    start = time.perf_counter()
    tiles = tile_tensors(torch, table, layer, g.place, g.means.device)
    torch.cuda.synchronize()
    read_ms = 1e3 * (time.perf_counter() - start)
    own, own_alpha, meta = draw_own(gsplat, g, c, table.antialiased)
    ours, our_alpha = draw_from_tables(torch, gsplat, g, c, table.antialiased, tiles)
    psnr = {"own / tables": decibels(own, ours), "own / tables, alpha": decibels(own_alpha, our_alpha)}
    if reference is not None:
        bake_rgb = torch.from_numpy(reference).to(own.device)[..., :3]
        psnr |= {"own / bake": decibels(own, bake_rgb), "tables / bake": decibels(ours, bake_rgb)}
    return {"camera": table.camera, "size": [camera.width, camera.height], "gaussians": len(g.means), "visible": table.visible, "pairs": table.pairs,
            "own_pairs": len(meta["flatten_ids"]), "psnr": psnr, "read_table_ms": read_ms, "ms": steps(torch, gsplat, g, c, table.antialiased, tiles)}


def reference_picture(bake, layer, table, path):
    """Over black, as gsplat draws: float32 [height, width, 4]; None: there is none."""
    if not path:
        return bake.draw(table.camera, table.profile, table.antialiased, table.near, [0, 0, 0], layer=layer) if splatkiln.library() else None
    picture = np.load(path)
    if bake.scene.background is not None:  # kiln-render draws over it
        picture[..., :3] -= (1 - picture[..., 3:]) * bake.scene.background.astype(np.float32)
    return picture


def main(argv=None):
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("manifest")
    p.add_argument("--camera", help="default: the first that has a table")
    p.add_argument("--reference", help=".npy of kiln-render, of this camera (default: drawn by libsplatkiln, if it is found)")
    p.add_argument("--json", help="write the figures here")
    p.add_argument("--min-psnr", type=float, default=85, help="exit 1 below (default 85)")
    a = p.parse_args(argv)
    torch, gsplat, why_not = load_gsplat()
    if why_not:
        print(f"SKIP: {why_not}")
        return 77
    with splatkiln.Bake(a.manifest) as bake, torch.no_grad():
        tables = [t for t in bake.tile_tables() if t.profile == "gsplat-1.5" and a.camera in (None, t.camera)]
        require(tables, "there is no tile table of profile gsplat-1.5 and this camera: run kiln-tiles --profile gsplat-1.5")
        require(bake.stage_state("tiles") == "fresh", "the tile tables are stale: run kiln-tiles")
        layer = bake.layer()
        g = gaussians(torch, bake, layer, "cuda")
        r = compare(torch, gsplat, bake, layer, g, tables[0], reference_picture(bake, layer, tables[0], a.reference))
    print(f"{r['camera']}: {r['size'][0]} x {r['size'][1]}, {r['gaussians']} Gaussians, {r['visible']} visible, {r['pairs']} pairs stored, {r['own_pairs']} of gsplat, "
          f"gsplat {gsplat.__version__} on {torch.cuda.get_device_name()}")
    for name, value in r["psnr"].items():
        print(f"  {name:22} {value:8.2f} dB")
    for name, value in r["ms"].items():
        print(f"  {name:22} {value:8.3f} ms")
    print(f"  {'read the table':22} {r['read_table_ms']:8.3f} ms, once a camera: read and unpacked on the CPU, decoded on the GPU")
    if a.json:
        with open(a.json, "w") as f:
            json.dump(r, f, indent=1)
    least = min(r["psnr"].values())
    if least < a.min_psnr:
        print(f"FAIL: {least:.2f} dB is less than {a.min_psnr:g}")
    return int(least < a.min_psnr)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except splatkiln.BakeError as e:
        sys.exit(f"gsplat_from_bake: {e}")
