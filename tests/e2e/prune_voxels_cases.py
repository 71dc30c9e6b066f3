"""The python of tests/e2e/prune_voxels.t: `py FUNCTION [argument...]` of tests/cases.sh calls one of these.

What --filter-floaters and --filter-cluster drop, by the definition in stages/prune/voxel_math.h, over a dense grid in numpy."""
import os
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
UNIT, REACH, MOST = 1 << 23, 16, 1 << 15


def bare(path):
    """Points without scales and opacities: a ball, and some that stand alone."""
    r = np.random.default_rng(3)
    xyz = np.concatenate([r.normal(size=(1000, 3)), r.uniform(-20, 20, (30, 3))]).astype("<f4")
    with open(path, "wb") as f:
        f.write(b"ply\nformat binary_little_endian 1.0\nelement vertex %d\n" % len(xyz))
        f.write(b"".join(b"property float %c\n" % c for c in b"xyz") + b"end_header\n" + xyz.tobytes())


def scene(path, rows, shift, grain=None):
    """A shell, a ball beside it, faint and opaque Gaussians around both, needles, and some that are far larger than a voxel.

    grain: centres are multiples of it before the shift."""
    rows, r = int(rows), np.random.default_rng(11)
    counts = [int(rows * share) for share in (0.5, 0.2, 0.29)]
    shell, ball, loose = (r.normal(size=(n, 3)) for n in counts)
    shell /= np.linalg.norm(shell, axis=1, keepdims=True)
    ball *= 0.4 * (r.random((counts[1], 1))**(1 / 3)) / np.linalg.norm(ball, axis=1, keepdims=True)
    rest = r.uniform(-2.5, 2.5, (rows - sum(counts), 3))
    xyz = np.concatenate([shell, ball + (1.9, 0.3, -0.4), r.uniform(-2.5, 2.5, loose.shape), rest])
    sigmas = np.exp(r.uniform(np.log(0.004), np.log(0.035), xyz.shape))
    sigmas[sum(counts[:2]):] *= 2
    needles, large = slice(-len(rest), -8), slice(-8, None)
    sigmas[needles] = r.uniform(0.003, 0.02, sigmas[needles].shape)
    sigmas[needles, 1] = r.uniform(0.1, 0.3, sigmas[needles, 1].shape)
    sigmas[large] = r.uniform(0.5, 0.8, sigmas[large].shape)
    opacity = r.random(rows)**3 * 0.98 + 0.003
    opacity[sum(counts[:2]):] = np.exp(r.uniform(np.log(0.003), np.log(0.3), rows - sum(counts[:2])))
    opacity[large] *= 0.2
    quats = r.normal(size=(rows, 4))
    if grain:
        xyz = np.round(xyz / float(grain)) * float(grain)
    columns = np.concatenate([xyz + np.array(shift.split(","), float), r.uniform(-1, 1, (rows, 3)), np.log(opacity / (1 - opacity))[:, None],
                              np.log(sigmas), quats], axis=1)[r.permutation(rows)]
    names = "x y z f_dc_0 f_dc_1 f_dc_2 opacity scale_0 scale_1 scale_2 rot_0 rot_1 rot_2 rot_3".split()
    head = f"ply\nformat binary_little_endian 1.0\nelement vertex {rows}\n" + "".join(f"property float {n}\n" for n in names)
    with open(path, "wb") as f:
        f.write(head.encode() + b"end_header\n" + columns.astype("<f4").tobytes())


def sky(path):
    """Small Gaussians in a cube, and a thousand around all of it, whose boxes have every voxel of the others."""
    n, large, r = 21000, 1000, np.random.default_rng(5)
    columns = np.zeros((n, 14), "<f4")
    columns[:, :3] = r.uniform(-3, 3, (n, 3))
    columns[:, 6] = -1
    columns[:, 7:10] = np.log(0.01)
    columns[-large:, 7:10] = np.log(5)
    columns[:, 10] = 1
    names = "x y z f_dc_0 f_dc_1 f_dc_2 opacity scale_0 scale_1 scale_2 rot_0 rot_1 rot_2 rot_3".split()
    head = f"ply\nformat binary_little_endian 1.0\nelement vertex {n}\n" + "".join(f"property float {n}\n" for n in names)
    with open(path, "wb") as f:
        f.write(head.encode() + b"end_header\n" + columns.tobytes())


def planes(manifest, layer, plane, kind, components):
    from schema_page import reader
    array, db = reader(manifest)
    where = "plane_data WHERE layer = ? AND chunk = ? AND plane = ?"
    chunks = [c for c, in db.execute("SELECT DISTINCT chunk FROM plane_data WHERE layer = ? ORDER BY ordinal", (layer,))]
    return np.concatenate([np.array(array(kind, where, layer, c, plane)).reshape(components, -1) for c in chunks], axis=1), db


class Rows:
    """What a row is in the grid of voxels of this size."""
    def __init__(self, source, size):
        read = lambda name, n: planes(source, "source", name, "f", n)[0].astype(np.float64).T
        _, db = planes(source, "source", "source_row", "I", 1)
        origin = np.array(db.execute("SELECT origin_x, origin_y, origin_z FROM scene").fetchone())
        w, x, y, z = (read("quats", 4) / np.linalg.norm(read("quats", 4), axis=1, keepdims=True)).T
        turn = np.array([[1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
                         [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
                         [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)]]).transpose(2, 0, 1)
        scale = np.exp(read("log_scales", 3))
        self.size, self.mean = size, read("means", 3) + origin
        self.alpha = 1 / (1 + np.exp(-read("opacity_logits", 1)[:, 0]))
        self.whiten = (turn / scale[:, None, :]).transpose(0, 2, 1)
        self.reach = 3 * (np.abs(turn) * scale[:, None, :]).sum(axis=2)
        large = (2 * self.reach / size + 1).prod(axis=1) > MOST
        self.near = np.where(large[:, None], np.minimum(self.reach, REACH * size), self.reach)
        self.first = np.floor((self.mean - self.near) / (4 * size)).astype(int) * 4  # the voxels of the blocks that meet the near box
        self.last = np.floor((self.mean + self.near) / (4 * size)).astype(int) * 4 + 3
        self.lo = np.ceil((self.mean - self.reach) / size - 1).astype(int)
        self.hi = np.floor((self.mean + self.reach) / size).astype(int)
        self.base, self.shape = self.first.min(axis=0), self.last.max(axis=0) - self.first.min(axis=0) + 1

    def d2(self, rows, offsets):
        return (np.einsum("nka,n...a->n...k", self.whiten[rows], offsets)**2).sum(axis=-1)

    def flat(self, voxels):
        return np.ravel_multi_index(tuple((voxels - self.base).T), self.shape)

    def each(self, rows, lo, hi):
        """Voxels of boxes, with the row of each; boxes of one shape at a time."""
        shapes, which = np.unique(hi - lo + 1, axis=0, return_inverse=True)
        for i, shape in enumerate(shapes):
            of = np.flatnonzero(which.ravel() == i)
            off = np.stack(np.meshgrid(*map(np.arange, shape), indexing="ij"), axis=-1).reshape(-1, 3)
            yield np.repeat(rows[of], len(off)), (lo[of][:, None, :] + off).reshape(-1, 3)

    def solid(self, opacity):
        """Which voxels are, as a dense grid."""
        n = int(self.shape.prod())
        sums, exists = np.zeros(n), np.zeros(self.shape, bool)
        lo, hi = np.maximum(self.lo, self.base), np.minimum(self.hi, self.base + self.shape - 1)
        inside = np.flatnonzero((lo <= hi).all(axis=1))
        for rows, voxels in self.each(inside, lo[inside], hi[inside]):
            below, above = voxels * self.size - self.mean[rows], (voxels + 1) * self.size - self.mean[rows]
            d2 = self.d2(rows, np.where(below > 0, below, np.where(above < 0, above, 0)))
            value = np.floor(self.alpha[rows] * np.exp(-0.5 * d2) * UNIT + 0.5)
            sums += np.bincount(self.flat(voxels), value, n)
        for first, last in np.unique(np.concatenate([self.first, self.last], axis=1), axis=0).reshape(-1, 2, 3) - self.base:
            exists[first[0]:last[0] + 1, first[1]:last[1] + 1, first[2]:last[2] + 1] = True
        return (sums >= np.ceil(-np.log(1 - opacity) * UNIT)).reshape(self.shape) & exists

    def centres(self, solid):
        return solid.ravel()[self.flat(np.floor(self.mean / self.size).astype(int))]

    def hits(self, rows, solid, least):
        """How many solid voxels each of these rows hits."""
        count = np.zeros(len(self.mean), int)
        for some, voxels in self.each(rows, self.first[rows], self.last[rows]):
            there = solid.ravel()[self.flat(voxels)]
            some, voxels = some[there], voxels[there]
            d2 = self.d2(some, (voxels + 0.5) * self.size - self.mean[some])
            np.add.at(count, some[self.alpha[some] * np.exp(-0.5 * d2) >= least], 1)
        return count[rows]


def cluster(rows, solid, seed):
    """Voxels that hang together with the one that is nearest to the seed."""
    at = np.clip(np.floor(np.array(seed) / rows.size).astype(int) - rows.base, 0, rows.shape - 1)
    off = np.argwhere(solid) - at
    # by the order of splat-transform, which turns x and y
    start = min((tuple(o) for o in off), key=lambda o: (max(map(abs, o)), o[2], -o[1], -o[0]))
    reached = np.zeros_like(solid)
    reached[tuple(at + start)] = True
    while True:
        more = reached.copy()
        for axis in range(3):
            cut = lambda s: tuple(s if a == axis else slice(None) for a in range(3))
            more[cut(slice(1, None))] |= reached[cut(slice(None, -1))]
            more[cut(slice(None, -1))] |= reached[cut(slice(1, None))]
        more &= solid
        if (more == reached).all():
            return reached, any(start)
        reached = more


def has_blocks(solid):
    pad = solid.reshape(solid.shape[0] // 4, 4, solid.shape[1] // 4, 4, solid.shape[2] // 4, 4)
    return pad.any(axis=(1, 3, 5))


def dropped(source, pruned, rule, size, opacity, least, seed="0,0,0", most="0.6"):
    """Fails where other rows are dropped than the definition says."""
    size, opacity, least = float(size), float(opacity), float(least)
    rows = Rows(source, size)
    solid, needed, kept = rows.solid(opacity), np.ones(len(rows.mean)), None
    if rule == "cluster":
        all_solid, (solid, moved) = solid, cluster(rows, solid, [float(v) for v in seed.split(",")])
        long = rows.near.max(axis=1) > size
        needed[long] = np.maximum(np.ceil(0.1 * (2 * rows.near[long] / size).prod(axis=1)), 1)
        if (has_blocks(solid) == has_blocks(all_solid)).all():
            kept = np.ones(len(rows.mean), bool)
        print(f"{int(solid.sum())} of {int(all_solid.sum())} solid voxels, seed moved: {moved}")
    if kept is None:
        kept = rows.centres(solid)
        others = np.flatnonzero(~kept)
        by_centre = int(kept.sum())
        kept[others] = rows.hits(others, solid, least) >= needed[others]
        print(f"{int(solid.sum())} solid voxels keep {by_centre} rows by centres, {int(kept.sum()) - by_centre} by hits")
    names = planes(source, "source", "source_row", "I", 1)[0][0]
    stays = np.isin(names, planes(pruned, "pruned", "source_row", "I", 1)[0][0])
    wrong = kept != stays
    print(f"{rule} {size},{opacity},{least}: {int((~stays).sum())} of {len(stays)} dropped, {int(wrong.sum())} otherwise")
    assert not wrong.any(), (names[wrong][:10], stays[wrong][:10])
    assert 100 < (~stays).sum() < len(stays) * float(most) or most == "0"


def split(record, source, floaters, cluster):
    """Fails where a run of all rules does not count the rows that the rules drop alone, each for the first of them."""
    import json
    rules, names = json.load(open(record))["rules"], planes(source, "source", "source_row", "I", 1)[0][0]
    by_floaters, by_cluster = (~np.isin(names, planes(f, "pruned", "source_row", "I", 1)[0][0]) for f in (floaters, cluster))
    count = [rules[r]["dropped"] for r in ("outlier-sor", "filter-floaters", "filter-cluster")]
    union = int((by_floaters | by_cluster).sum())
    print(count, int(by_floaters.sum()), int(by_cluster.sum()), union)
    assert 0 < count[0] < len(names) / 10 and union <= sum(count) <= union + count[0]
    assert by_floaters.sum() - count[0] <= count[1] <= by_floaters.sum()
    assert (by_cluster & ~by_floaters).sum() - count[0] <= count[2] <= (by_cluster & ~by_floaters).sum()


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
