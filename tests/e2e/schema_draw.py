"""What tests/e2e/schema_draw.t checks: a picture of a bake that is drawn by schema/SCHEMA.md alone.

schema_draw.py MANIFEST CAMERA PICTURE.npy PROFILE ANTIALIASED: draws the camera by the section "Drawing", with the page's reader, its
table of profiles and its basis of spherical harmonics. Fails where kiln-render's picture is less than 90 dB from that: in float64 a
value at a threshold may fall on the other side, in one pixel or two.
schema_draw.py --vary ...: also with one number changed at a time, of which each must be seen in the picture.
schema_draw.py --scene PLY: gives a generated scene degree 4, and tiny opaque Gaussians before the first camera."""
import re
import sqlite3
import sys

import numpy as np



def make_scene(path):
    head, body = open(path, "rb").read().split(b"end_header\n", 1)
    names = re.findall(r"property float (\w+)", head.decode())
    old = np.frombuffer(body, [(n, "<f4") for n in names])
    higher = [f"f_rest_{i}" for i in range(72)]
    new = np.zeros(len(old), [(n, "<f4") for n in [n for n in names if not n.startswith("f_rest")] + higher])
    for n in new.dtype.names:
        new[n] = old[n] if n not in higher else 0
    random = np.random.default_rng(1)
    for i in range(72):  # a PLY has channel after channel: 24 coefficients of red, then of green, then of blue
        channel, k = divmod(i, 24)
        new[higher[i]] = old[f"f_rest_{15 * channel + k}"] if k < 15 else random.normal(0, 0.1, len(old))
    for n, value in zip(("scale_0", "scale_1", "scale_2", "opacity", "x"), (-12, -12, -12, 6, 2.4)):
        new[n][:40] = value
    new["y"][:40], new["z"][:40] = random.uniform(-0.9, -0.1, 40), random.uniform(-0.4, 0.4, 40)
    lines = [line for line in head.decode().split("\n") if line and not line.startswith("property")]
    with open(path, "wb") as f:
        f.write("\n".join(lines + [f"property float {n}" for n in new.dtype.names] + ["end_header\n"]).encode() + new.tobytes())


if sys.argv[1] == "--scene":
    make_scene(sys.argv[2])
    sys.exit()

page = open("schema/SCHEMA.md", encoding="utf-8").read()
drawing = page[page.index("\n## Drawing\n"):page.index("\n## Levels\n")]
vary = sys.argv[1] == "--vary"
manifest, camera, picture, profile, antialiased = sys.argv[2:] if vary else sys.argv[1:]
antialiased = int(antialiased)

sys.argv[1:] = [manifest]
reader = re.search(r"^```python\n(.*?)^```", page, re.S | re.M).group(1)
exec(reader[:reader.index("def tiles(")])  # the page's array(), which unpacks and checks blobs


def column(row):
    """A row of the table of profiles, for this one."""
    cells = next(line for line in drawing.split("\n") if line.startswith("| ") and row in line).strip("| ").split(" | ")
    return cells[1 + ["inria", "gsplat-1.5", "gsplat-1.6"].index(profile)]


def factors(text):
    """'-0.5 y (3 xx - yy)' as Python: what stands side by side is multiplied."""
    out = ""
    for token in re.findall(r"\d+\.?\d*|[xyz]+|[()+-]", text):
        if token not in "+-)" and out and out[-1] not in "(+-":
            out += "*"
        out += "*".join(token) if token[0] in "xyz" else token
    return out


basis = re.findall(r"^(?:    Y_\d+ \.\. Y_\d+|    ) +(-?\d\.\d{7,}.*)$", drawing, re.M)
assert len(basis) == 24, basis
numbers = {"blur": 0.3, "least alpha": 1 / 255, "centre": 0.5, "colour": 0.5, "Y_0": 0.28209479177387814, "shift": 1e-7, "sigmas": 3.0,
           "spread": 0.1, "field": 1.3 if profile == "inria" else 0.3, "reach": 3.33, "aa_floor": float(column("aa_floor")),
           "max_alpha": float(column("max_alpha")), "left": float(column("a pixel ends").strip("<= ")), "order": 1.0, "state": 1.0}
assert numbers["Y_0"] == float(re.search(r"0\.5 \+ (\d\.\d+) c0", drawing).group(1))
at_or_below = column("a pixel ends").startswith("<=")
quat_floor = float(column("quat_floor").replace("none", "0"))


def query(sql, *key):
    db.row_factory = sqlite3.Row
    row = db.execute(sql, key).fetchone()
    db.row_factory = None
    return row


cam = query("SELECT * FROM camera WHERE name = ?", camera)
scene = query("SELECT * FROM scene")
chunks = [c for c, in db.execute("SELECT DISTINCT chunk FROM plane_data WHERE layer = 'baked' ORDER BY ordinal").fetchall()]


def plane(name, components, kind="f"):
    parts = [np.array(array(kind, "plane_data WHERE layer = 'baked' AND chunk = ? AND plane = ?", c, name)).reshape(components, -1) for c in chunks]
    return np.concatenate(parts, axis=1)


degree = query("SELECT sh_degree FROM layer JOIN stage_output ON stage_output.layer = layer.id WHERE role = 'baked'")[0]
means, log_scales, quats = (plane(n, k).astype(np.float64) for n, k in (("means", 3), ("log_scales", 3), ("quats", 4)))
logits, sh0, source_row = plane("opacity_logits", 1)[0].astype(np.float64), plane("sh0", 3).astype(np.float64), plane("source_row", 1, "I")[0]
shN = plane("shN", 3 * ((degree + 1)**2 - 1)).astype(np.float64).reshape(-1, 3, means.shape[1]) if degree else np.empty((0, 3, means.shape[1]))
R = np.array([[cam[f"r{i}{j}"] for j in range(3)] for i in range(3)])
t = np.array([cam["t0"], cam["t1"], cam["t2"]]) + R @ np.array([scene["origin_x"], scene["origin_y"], scene["origin_z"]])
W, H, fx, fy, cx, cy = (cam[k] for k in ("width", "height", "fx", "fy", "cx", "cy"))


def draw(n):
    scale, opacity = np.exp(log_scales), 1 / (1 + np.exp(-logits))
    w, x, y, z = quats / np.maximum(np.linalg.norm(quats, axis=0), quat_floor)
    Q = np.array([[1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
                  [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
                  [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)]])
    S = np.einsum("ikn,kn,jkn->nij", Q, scale**2, Q)
    X, Y, Z = R @ means + t[:, None]
    inria = profile == "inria"
    if inria:
        u_max, v_max = n["field"] * W / (2 * fx), n["field"] * H / (2 * fy)
        u_min, v_min = -u_max, -v_max
    else:
        u_max, v_max = (W - cx) / fx + n["field"] * W / (2 * fx), (H - cy) / fy + n["field"] * H / (2 * fy)
        u_min, v_min = -(cx / fx + n["field"] * W / (2 * fx)), -(cy / fy + n["field"] * H / (2 * fy))
    u, v, zero = np.clip(X / Z, u_min, u_max), np.clip(Y / Z, v_min, v_max), np.zeros_like(Z)
    J = np.array([[fx / Z, zero, -fx * u / Z], [zero, fy / Z, -fy * v / Z]]).transpose(2, 0, 1) @ R
    cov0 = J @ S @ J.transpose(0, 2, 1)
    xx, xy, yy = cov0[:, 0, 0] + n["blur"], cov0[:, 0, 1], cov0[:, 1, 1] + n["blur"]
    det0, det = cov0[:, 0, 0] * cov0[:, 1, 1] - xy**2, xx * yy - xy**2
    A, B, C = yy / det, -xy / det, xx / det
    if antialiased:
        opacity = opacity * np.sqrt(np.maximum(det0 / det, n["aa_floor"]))
    px, py = (fx * X / (Z + n["shift"]) + W / 2, fy * Y / (Z + n["shift"]) + H / 2) if inria else (fx * X / Z + cx, fy * Y / Z + cy)

    near = float(column("near plane").split(";")[0])
    columns, rows = (np.tile([0, 10**9], (len(Z), 1)) for _ in range(2))
    if inria:
        m = (xx + yy) / 2
        r = np.ceil(n["sigmas"] * np.sqrt(m + np.sqrt(np.maximum(n["spread"], m**2 - det))))
        tiles = [[np.clip(np.floor((p - 0.5 - r) / 16), 0, -(-s // 16)), np.clip(np.floor((p - 0.5 + r + 15) / 16), 0, -(-s // 16))]
                 for p, s in ((px, W), (py, H))]
        (columns, rows) = (np.array(b).T * 16 for b in tiles)
        visible = (Z > near) & (det != 0) & (columns[:, 0] < columns[:, 1]) & (rows[:, 0] < rows[:, 1])
    else:
        k = np.minimum(n["reach"], np.sqrt(2 * np.log(np.maximum(255 * opacity, 1))))
        rx, ry = np.ceil(k * np.sqrt(xx)), np.ceil(k * np.sqrt(yy))
        visible = (Z >= near) & (Z <= 1e10) & (det > 0) & (opacity >= 1 / 255) & ((rx > 0) | (ry > 0))
        visible &= (px + rx > 0) & (px - rx < W) & (py + ry > 0) & (py - ry < H)

    eye = -R.T @ t
    direction = means - eye[:, None]
    x, y, z = direction / np.linalg.norm(direction, axis=0)
    rgb = n["colour"] + n["Y_0"] * sh0
    for i in range(len(shN)):
        rgb = rgb + n.get(f"Y_{i + 1}", 1.0) * eval(factors(basis[i])) * shN[i]
    rgb = np.maximum(0, rgb).T

    T, colour, ended = np.ones((H, W)), np.zeros((H, W, 3)), np.zeros((H, W), bool)
    jj, ii = np.mgrid[0:H, 0:W]
    order = np.lexsort((source_row, n["order"] * Z.astype(np.float32)))
    for g in order[visible[order]]:
        dx, dy = px[g] - (ii + n["centre"]), py[g] - (jj + n["centre"])
        power = -(A[g] * dx**2 + C[g] * dy**2) / 2 - B[g] * dx * dy
        alpha = np.minimum(n["max_alpha"], opacity[g] * np.exp(np.minimum(power, 0)))
        shows = (power <= 0) & (alpha >= n["least alpha"]) & ~ended
        shows &= (ii >= columns[g, 0]) & (ii < columns[g, 1]) & (jj >= rows[g, 0]) & (jj < rows[g, 1])
        left = T * (1 - alpha)
        ends = shows & ((left <= n["left"]) if at_or_below else (left < n["left"]))
        ended |= ends & (n["state"] > 0)
        shows &= ~ends
        colour += np.where(shows, T * alpha, 0)[..., None] * rgb[g]
        T = np.where(shows, left, T)
    return np.concatenate([colour, 1 - T[..., None]], axis=2), int(visible.sum())


def decibels(a):
    return -10 * np.log10(max(np.mean((a - truth)**2), 1e-30))


truth = np.load(picture).astype(np.float64)
base, visible = draw(numbers)
db_base = decibels(base)
print(f"{profile} {antialiased}: {db_base:.1f} dB, {visible} visible")
if len(shN) != 24 or visible < 100 or db_base < 90:
    sys.exit(f"FAIL: {profile}, antialiased {antialiased}: SCHEMA.md's picture is {db_base:.1f} dB from kiln-render's, {visible} visible, {len(shN)} coefficients")
if vary:
    changed = {"blur": 0.31, "least alpha": 1 / 200, "centre": 0.49, "colour": 0.51, "Y_0": 0.283, "field": 0.1, "max_alpha": 0.9, "left": 1e-3,
               "order": -1.0, "state": 0.0, "aa_floor": 0.0, **({"sigmas": 2.5} if profile == "inria" else {}),
               **{f"Y_{i}": -1.0 for i in range(1, 25)}}
    for name, value in changed.items():
        there = decibels(draw({**numbers, name: value})[0])
        if there > db_base - 6:
            sys.exit(f"FAIL: {profile}: nobody sees that '{name}' is {value}: {there:.1f} of {db_base:.1f} dB")
