"""What tests/e2e/python.t checks: python/splatkiln beside kiln's own outputs.

python.py MANIFEST FOLDER library|modules: how blobs are unpacked. FOLDER has chunks/ and scene.ply of kiln-export, cam1.npy of
kiln-render, info.json and tiles.json of the programs, digests of kiln-verify."""
import json
import pathlib
import shutil
import sqlite3
import sys

import numpy as np

manifest, folder, how = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]
if how == "library":
    sys.modules["zstandard"] = sys.modules["xxhash"] = None
sys.path.insert(0, "python")
import splatkiln  # noqa: E402
from splatkiln.__main__ import main as read_all  # noqa: E402

CAMERA = "cam1"


def fail(ok, what):
    if not ok:
        sys.exit(f"FAIL: {what}")


def same(a, b, what):
    """Bit by bit."""
    a, b = np.ascontiguousarray(a), np.ascontiguousarray(b)
    fail(a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes(), f"{what} differs: {a.dtype} {a.shape}, {b.dtype} {b.shape}")


def read_ply(path):
    data = path.read_bytes()
    head, body = data.split(b"end_header\n", 1)
    names = [line.split()[2] for line in head.decode().splitlines() if line.startswith("property float ")]
    return np.frombuffer(body, [(n, "<f4") for n in names])


# ---- layers -----------------------------------------------------------------------------------------------------------------------
def check_chunks(layer):
    index = json.loads((folder / "chunks/index.json").read_text())
    fail([c["name"] for c in index["chunks"]] == [c.name for c in layer.chunks] and len(layer.chunks) > 2, "the names of chunks")
    fail(index["layer"]["digest"] == layer.digest.hex(), "the layer's digest")
    for chunk, there in zip(layer.chunks, index["chunks"]):
        fail(chunk.count == there["count"] and set(chunk.planes) == set(there["planes"]), f"chunk {chunk.name}")
        fail(chunk.reach_max.tolist() == there["reach_max"] and chunk.box_min.tolist() == there["box_min"], f"the boxes of {chunk.name}")
        for name, plane in there["planes"].items():
            mine = layer.plane(chunk, name)
            fail(mine.tobytes() == (folder / "chunks" / plane["file"]).read_bytes() and mine.size == chunk.count * plane["components"], f"plane {name} of {chunk.name}")


def check_ply(layer):
    ply, planes = read_ply(folder / "scene.ply"), {}
    for name in layer.chunks[0].planes:
        planes[name] = np.concatenate([layer.plane(c, name).reshape(-1, c.count) for c in layer.chunks], axis=1)
    order = np.argsort(planes["source_row"][0])
    higher = [f"f_rest_{i}" for i in range(planes["shN"].shape[0])]
    columns = {"means": ["x", "y", "z"], "log_scales": ["scale_0", "scale_1", "scale_2"], "quats": ["rot_0", "rot_1", "rot_2", "rot_3"],
               "opacity_logits": ["opacity"], "sh0": ["f_dc_0", "f_dc_1", "f_dc_2"],
               "shN": [higher[len(higher) // 3 * (i % 3) + i // 3] for i in range(len(higher))]}  # a PLY has channel after channel
    for name, of in columns.items():
        for i, column in enumerate(of):
            same(planes[name][i][order], ply[column], column)


def check_activation(layer):
    g, chunk = layer.gaussians(layer.chunks[0]), layer.chunks[0]
    n, degree = chunk.count, layer.sh_degree
    fail([a.shape for a in (g.means, g.scales, g.quats, g.opacities, g.sh)] == [(n, 3), (n, 3), (n, 4), (n,), (n, (degree + 1) ** 2, 3)], "shapes")
    fail(all(a.dtype == np.float32 for a in vars(g).values()), "types")
    logits = layer.plane(chunk, "opacity_logits").astype(np.float64)
    fail(np.allclose(g.opacities, 1 / (1 + np.exp(-logits)), rtol=1e-5, atol=0), "opacities")
    fail(np.allclose(np.linalg.norm(g.quats, axis=1), 1, atol=1e-6), "quaternions")
    fail((np.einsum("ij,ij->i", g.quats, layer.plane(chunk, "quats").T) > 0).all(), "quaternions turned")
    same(g.sh[:, 1, 2], layer.plane(chunk, "shN")[2], "sh")
    fail(np.allclose(np.log(g.scales), layer.plane(chunk, "log_scales").T, atol=1e-5), "scales")
    s = splatkiln.sigmoid(np.array([-200, -1, 0, 1, 200], np.float32))
    fail(np.isfinite(s).all() and s[2] == 0.5 and s[4] == 1 and 0 <= s[0] < 1e-30, "sigmoid")


# ---- tile tables ------------------------------------------------------------------------------------------------------------------
def leb128(code, count):
    """The plain way: a number at a time."""
    rank, out = 0, []
    for _ in range(count):
        for shift in range(0, 35, 7):
            byte = next(code)
            rank += (byte & 127) << shift
            if byte < 128:
                break
        out.append(rank)
    return out


def check_tables(bake, layer):
    info = {c["name"]: c for c in json.loads((folder / "info.json").read_text())["cameras"]}
    told = {c["name"]: c for c in json.loads((folder / "tiles.json").read_text())["cameras"]}
    tables = bake.tile_tables()
    fail([t.camera for t in tables] == sorted(info) and len(tables) == 2, "the cameras of tables")
    for t in tables:
        fail((t.visible, t.pairs, len(t.bands)) == tuple(told[t.camera][k] for k in ("visible", "pairs", "bands")) and t.pairs > 10000, "counts of a table")
        fail((t.visible, t.pairs) == (info[t.camera]["visible"], info[t.camera]["pairs"]), "counts of kiln-info")
        offsets, ranks = t.lists()
        fail(len(offsets) == t.tiles_x * t.tiles_y + 1 and offsets[-1] == len(ranks) == t.pairs, "offsets")
        code, slow = iter(t._array(0, "rank_delta", "u1").tolist()), []
        for count in t._array(0, "tile_count", "<u4").tolist():
            slow += leb128(code, count)
        same(ranks, np.array(slow, np.int64), "ranks")
        rows = t.visible_rows(layer)
        fail(len(np.unique(rows)) == t.visible and rows.max() < layer.count, "visible rows")
        c = bake.cameras[t.camera]
        m = c.viewmat(bake.scene.origin)
        means = np.concatenate([layer.plane(k, "means") for k in layer.chunks], axis=1)[:, rows]
        depth = m[2, :3] @ means + m[2, 3]
        fail((depth > 0).all() and (np.diff(depth) > -1e-5 * depth[1:]).all(), "not nearest first")


def picture_from_lists(bake, layer, table):
    """gsplat-1.5's arithmetic (kernels/profiles), as few lines of numpy: what the lists, camera and activation are worth."""
    c, (offsets, ranks), rows = bake.cameras[table.camera], table.lists(), table.visible_rows(layer)
    g = [layer.gaussians(k) for k in layer.chunks]
    join = lambda name: np.concatenate([getattr(k, name) for k in g])[rows].astype(np.float64)
    means, scales, (w, x, y, z), opacity, sh = join("means"), join("scales"), join("quats").T, join("opacities"), join("sh")
    m = c.viewmat(bake.scene.origin)
    p = means @ m[:3, :3].T + m[:3, 3]
    R = np.stack([1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y), 2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x),
                  2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)], -1).reshape(-1, 3, 3)
    M = m[:3, :3] @ R * scales[:, None]
    clamp = lambda v, size, f, centre: np.clip(v, -(centre / f + 0.15 * size / f), (size - centre) / f + 0.15 * size / f)
    u, v = clamp(p[:, 0] / p[:, 2], c.width, c.fx, c.cx), clamp(p[:, 1] / p[:, 2], c.height, c.fy, c.cy)
    J = np.zeros((len(p), 2, 3))
    J[:, 0, 0], J[:, 1, 1], J[:, 0, 2], J[:, 1, 2] = c.fx / p[:, 2], c.fy / p[:, 2], -c.fx * u / p[:, 2], -c.fy * v / p[:, 2]
    A = J @ M
    conic = np.linalg.inv(A @ A.transpose(0, 2, 1) + 0.3 * np.eye(2))
    xy = p[:, :2] / p[:, 2:] * [c.fx, c.fy] + [c.cx, c.cy]
    d = means - (-m[:3, :3].T @ m[:3, 3])
    dx, dy, dz = (d / np.linalg.norm(d, axis=1, keepdims=True)).T
    Y = [0.28209479177387814 + 0 * dx, -0.4886025119029199 * dy, 0.4886025119029199 * dz, -0.4886025119029199 * dx,
         1.0925484305920792 * dx * dy, -1.0925484305920792 * dy * dz, 0.31539156525252005 * (2 * dz * dz - dx * dx - dy * dy),
         -1.0925484305920792 * dx * dz, 0.5462742152960396 * (dx * dx - dy * dy), -0.5900435899266435 * dy * (3 * dx * dx - dy * dy),
         2.890611442640554 * dx * dy * dz, -0.4570457994644658 * dy * (4 * dz * dz - dx * dx - dy * dy),
         0.3731763325901154 * dz * (2 * dz * dz - 3 * dx * dx - 3 * dy * dy), -0.4570457994644658 * dx * (4 * dz * dz - dx * dx - dy * dy),
         1.445305721320277 * dz * (dx * dx - dy * dy), -0.5900435899266435 * dx * (dx * dx - 3 * dy * dy)]
    colour = np.maximum(0.5 + np.einsum("kn,nkc->nc", np.array(Y[:sh.shape[1]]), sh), 0)
    out, size = np.zeros((16 * table.tiles_y, 16 * table.tiles_x, 4)), splatkiln.TILE
    for t in range(len(offsets) - 1):
        i = ranks[offsets[t]:offsets[t + 1]]
        ty, tx = divmod(t, table.tiles_x)
        py, px = np.mgrid[ty * size:(ty + 1) * size, tx * size:(tx + 1) * size].reshape(2, -1) + 0.5
        ex, ey = xy[i, :1] - px, xy[i, 1:] - py
        power = -0.5 * (conic[i, 0, 0, None] * ex * ex + conic[i, 1, 1, None] * ey * ey) - conic[i, 0, 1, None] * ex * ey
        alpha = np.minimum(0.999, opacity[i, None] * np.exp(power))
        alpha[(power > 0) | (alpha < 1 / 255)] = 0
        left = np.cumprod(1 - alpha, axis=0)
        before = np.concatenate([np.ones((1, len(px))), left[:-1]]) if len(i) else left
        weight = np.where(np.cumsum((left <= 1e-4) & (alpha > 0), axis=0) > 0, 0, alpha * before)
        out[ty * size:(ty + 1) * size, tx * size:(tx + 1) * size] = np.concatenate([weight.T @ colour[i], weight.sum(0)[:, None]], 1).reshape(size, size, 4)
    return out[:c.height, :c.width]


# ---- a stranger's manifest --------------------------------------------------------------------------------------------------------
DAMAGES = {
    "a table of another text": "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = replace(sql, 'NOT NULL', '') WHERE name = 'chunk'",
    "a view for a table": "ALTER TABLE scene RENAME TO hidden; CREATE VIEW scene AS SELECT * FROM hidden",
    "another application": "PRAGMA application_id = 1",
    "a later version": "PRAGMA user_version = 3",
    "a name that leads out": "UPDATE camera SET name = '../x' WHERE name = 'cam1'",
    "a camera of no size": "UPDATE camera SET width = 0",
    "a pose that is no rotation": "UPDATE camera SET r00 = 3",
    "an infinite pose": "UPDATE camera SET t0 = 9e999",
    "a damaged blob": "UPDATE blob SET packed = zeroblob(length(packed)) WHERE hash IN (SELECT hash FROM plane_segment)",
    "blobs exchanged": "UPDATE blob SET packed = (SELECT packed FROM blob b WHERE b.raw_bytes = blob.raw_bytes AND b.id <> blob.id)"
                       " WHERE id = (SELECT max(a.id) FROM blob a JOIN blob b ON a.raw_bytes = b.raw_bytes AND a.id < b.id JOIN plane_segment p ON p.hash = a.hash)",
    "a blob that says another size": "UPDATE blob SET raw_bytes = raw_bytes + 4 WHERE hash IN (SELECT hash FROM plane_segment)",
    "a huge blob": "UPDATE blob SET raw_bytes = 1 << 50 WHERE hash IN (SELECT hash FROM plane_segment)",
    "a lost blob": "DELETE FROM blob WHERE hash IN (SELECT hash FROM tile_segment WHERE name = 'tile_count')",
    "a chunk with more rows": "UPDATE chunk SET count = count + 1",
    "a chunk of another name": "UPDATE chunk SET name = name || '0' WHERE ordinal = 0",
    "a plane of another type": "UPDATE plane SET type = 'i32' WHERE name = 'means'",
    "a plane less": "DELETE FROM plane WHERE name = 'quats'",
    "a layer of another digest": "UPDATE layer SET digest = zeroblob(16)",
    "a table of another digest": "UPDATE tile_table SET digest = zeroblob(16)",
    "a table of fewer pairs": "UPDATE tile_table SET pairs = pairs - 1",
    "a band that begins elsewhere": "UPDATE tile_band SET row0 = 1",
    "a table of another width": "UPDATE tile_table SET width = width + 16",
    "lists exchanged": "UPDATE tile_segment SET hash = (SELECT hash FROM tile_segment b WHERE b.name = tile_segment.name AND b.tile_table <> tile_segment.tile_table)"
                       " WHERE name = 'tile_bytes'",
}


def check_rounded_pose():
    """Kiln takes rotations that are rounded (schema/row_check.c), and so does this."""
    copy = folder / "rounded.db"
    shutil.copy(manifest, copy)
    db = sqlite3.connect(copy, isolation_level=None)
    db.execute("UPDATE camera SET r00 = r00 * 1.0015, r01 = r01 * 1.0015, r02 = r02 * 1.0015")
    db.close()
    with splatkiln.Bake(copy) as bake:
        fail(abs((bake.cameras[CAMERA].R[0] ** 2).sum() - 1.003) < 1e-4, "a rotation that is rounded")


def check_damages():
    for what, sql in DAMAGES.items():
        copy = folder / "damaged.db"
        shutil.copy(manifest, copy)
        db = sqlite3.connect(copy, isolation_level=None)
        db.executescript("PRAGMA ignore_check_constraints = ON; PRAGMA foreign_keys = OFF;")
        for name, in db.execute("SELECT name FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL").fetchall():
            db.execute(f"DROP INDEX {name}")
        db.executescript(sql)
        db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        db.close()
        try:
            read_all(str(copy))
        except splatkiln.BakeError:
            continue
        sys.exit(f"FAIL: {what} is read")


def main():
    with splatkiln.Bake(manifest) as bake:
        layer = bake.layer()
        fail(bake.scene.kind == "splats" and sorted(bake.cameras) == ["cam0", "cam1"] and bake.stage_state("tiles") == "fresh", "the scene")
        check_chunks(layer)
        check_ply(layer)
        check_activation(layer)
        check_tables(bake, layer)
        right = np.load(folder / "cam1.npy")
        fail(right[..., 3].mean() > 0.1, "an empty picture")
        mine = picture_from_lists(bake, layer, bake.tile_table(CAMERA))
        db = -10 * np.log10(((mine - right) ** 2).mean())
        fail(db >= 85, f"the picture from the lists has {db:.1f} dB")
        if how == "library":
            same(bake.draw(CAMERA, profile="gsplat-1.5"), right, "the picture of libsplatkiln")
            other = bake.draw(bake.cameras["cam0"], profile="gsplat-1.5")
            fail(other.shape == right.shape and (other != right).any(), "another camera, the same picture")
            for wrong in ({"camera": "cam7"}, {"camera": CAMERA, "profile": "x"}, {"camera": CAMERA, "background": [0, 0]}):
                try:
                    bake.draw(**wrong)
                except splatkiln.BakeError:
                    continue
                fail(False, f"drawn: {wrong}")
        for missing in (lambda: bake.layer("initial"), lambda: bake.tile_table("cam7"), lambda: layer.plane(layer.chunks[0], "x")):
            try:
                missing()
            except splatkiln.BakeError:
                continue
            fail(False, "what is not there is read")
        print(f"{how}: the picture from the lists has {db:.1f} dB")
    if how == "library":
        check_rounded_pose()
        check_damages()


main()
