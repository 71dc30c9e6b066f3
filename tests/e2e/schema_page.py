"""What schema/SCHEMA.md says of a bake, and nothing else: a camera's picture drawn by its section "Drawing", with the page's reader, its
table of profiles and its basis of spherical harmonics. For tests/e2e/schema_draw.py and prune_seen_cases.py.

page = Page(MANIFEST, CAMERA, PROFILE, ANTIALIASED); page.draw(page.numbers) gives the picture and how many Gaussians are visible;
page.project(numbers) where they are in the picture."""
import re
import sqlite3
import sys

import numpy as np

page = open("schema/SCHEMA.md", encoding="utf-8").read()
drawing = page[page.index("\n## Drawing\n"):page.index("\n## Levels\n")]
basis = re.findall(r"^(?:    Y_\d+ \.\. Y_\d+|    ) +(-?\d\.\d{7,}.*)$", drawing, re.M)
assert len(basis) == 24, basis


def factors(text):
    """'-0.5 y (3 xx - yy)' as Python: what stands side by side is multiplied."""
    out = ""
    for token in re.findall(r"\d+\.?\d*|[xyz]+|[()+-]", text):
        if token not in "+-)" and out and out[-1] not in "(+-":
            out += "*"
        out += "*".join(token) if token[0] in "xyz" else token
    return out


def reader(manifest):
    """The page's array(), which unpacks and checks blobs, and its connection."""
    names, argv = {}, sys.argv
    sys.argv = ["page", manifest]
    text = re.search(r"^```python\n(.*?)^```", page, re.S | re.M).group(1)
    exec(text[:text.index("def tiles(")], names)
    sys.argv = argv
    return names["array"], names["db"]


class Page:
    def __init__(self, manifest, camera, profile, antialiased):
        self.profile, self.antialiased = profile, antialiased
        self.array, self.db = reader(manifest)
        self.numbers = {"blur": 0.3, "least alpha": 1 / 255, "centre": 0.5, "colour": 0.5, "Y_0": 0.28209479177387814, "shift": 1e-7,
                        "sigmas": 3.0, "spread": 0.1, "field": 1.3 if profile == "inria" else 0.3, "reach": 3.33,
                        "aa_floor": float(self.column("aa_floor")), "max_alpha": float(self.column("max_alpha")),
                        "left": float(self.column("a pixel ends").strip("<= ")), "order": 1.0, "state": 1.0}
        assert self.numbers["Y_0"] == float(re.search(r"0\.5 \+ (\d\.\d+) c0", drawing).group(1))
        self.at_or_below = self.column("a pixel ends").startswith("<=")
        self.quat_floor = float(self.column("quat_floor").replace("none", "0"))
        self.cam, self.scene = self.query("SELECT * FROM camera WHERE name = ?", camera), self.query("SELECT * FROM scene")
        self.chunks = [c for c, in self.db.execute("SELECT DISTINCT chunk FROM plane_data WHERE layer = 'baked' ORDER BY ordinal")]
        self.degree = self.query("SELECT sh_degree FROM layer JOIN stage_output ON stage_output.layer = layer.id WHERE role = 'baked'")[0]
        self.means, self.log_scales, self.quats = (self.plane(n, k).astype(np.float64)
                                                   for n, k in (("means", 3), ("log_scales", 3), ("quats", 4)))
        self.logits, self.sh0 = self.plane("opacity_logits", 1)[0].astype(np.float64), self.plane("sh0", 3).astype(np.float64)
        self.source_row = self.plane("source_row", 1, "I")[0]
        n, k = self.means.shape[1], 3 * ((self.degree + 1)**2 - 1)
        self.shN = self.plane("shN", k).astype(np.float64).reshape(-1, 3, n) if k else np.empty((0, 3, n))

    def column(self, row):
        """A row of the table of profiles, for this one."""
        cells = next(line for line in drawing.split("\n") if line.startswith("| ") and row in line).strip("| ").split(" | ")
        return cells[1 + ["inria", "gsplat-1.5", "gsplat-1.6"].index(self.profile)]

    def query(self, sql, *key):
        self.db.row_factory = sqlite3.Row
        row = self.db.execute(sql, key).fetchone()
        self.db.row_factory = None
        return row

    def plane(self, name, components, kind="f"):
        where = "plane_data WHERE layer = 'baked' AND chunk = ? AND plane = ?"
        return np.concatenate([np.array(self.array(kind, where, c, name)).reshape(components, -1) for c in self.chunks], axis=1)

    def pose(self):
        cam, scene = self.cam, self.scene
        R = np.array([[cam[f"r{i}{j}"] for j in range(3)] for i in range(3)])
        return R, np.array([cam["t0"], cam["t1"], cam["t2"]]) + R @ np.array([scene["origin_x"], scene["origin_y"], scene["origin_z"]])

    def project(self, n):
        """Of each Gaussian: place, conic (A, B, C), opacity, depth, the columns and rows that it may show in, whether it is visible."""
        W, H, fx, fy, cx, cy = (self.cam[k] for k in ("width", "height", "fx", "fy", "cx", "cy"))
        R, t = self.pose()
        scale, opacity = np.exp(self.log_scales), 1 / (1 + np.exp(-self.logits))
        w, x, y, z = self.quats / np.maximum(np.linalg.norm(self.quats, axis=0), self.quat_floor)
        Q = np.array([[1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
                      [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
                      [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)]])
        S = np.einsum("ikn,kn,jkn->nij", Q, scale**2, Q)
        X, Y, Z = R @ self.means + t[:, None]
        inria = self.profile == "inria"
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
        if self.antialiased:
            opacity = opacity * np.sqrt(np.maximum(det0 / det, n["aa_floor"]))
        px, py = (fx * X / (Z + n["shift"]) + W / 2, fy * Y / (Z + n["shift"]) + H / 2) if inria else (fx * X / Z + cx, fy * Y / Z + cy)

        near = float(self.column("near plane").split(";")[0])
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
        return px, py, A, B, C, opacity, Z, columns, rows, visible

    def order(self, n, Z, visible):
        order = np.lexsort((self.source_row, n["order"] * Z.astype(np.float32)))
        return order[visible[order]]

    def colours(self, n):
        R, t = self.pose()
        eye = -R.T @ t
        direction = self.means - eye[:, None]
        x, y, z = direction / np.linalg.norm(direction, axis=0)
        rgb = n["colour"] + n["Y_0"] * self.sh0
        for i in range(len(self.shN)):
            rgb = rgb + n.get(f"Y_{i + 1}", 1.0) * eval(factors(basis[i])) * self.shN[i]
        rgb = np.maximum(0, rgb).T
        return rgb

    def draw(self, n):
        H, W = self.cam["height"], self.cam["width"]
        px, py, A, B, C, opacity, Z, columns, rows, visible = self.project(n)
        rgb = self.colours(n)
        T, colour, ended = np.ones((H, W)), np.zeros((H, W, 3)), np.zeros((H, W), bool)
        jj, ii = np.mgrid[0:H, 0:W]
        for g in self.order(n, Z, visible):
            dx, dy = px[g] - (ii + n["centre"]), py[g] - (jj + n["centre"])
            power = -(A[g] * dx**2 + C[g] * dy**2) / 2 - B[g] * dx * dy
            alpha = np.minimum(n["max_alpha"], opacity[g] * np.exp(np.minimum(power, 0)))
            shows = (power <= 0) & (alpha >= n["least alpha"]) & ~ended
            shows &= (ii >= columns[g, 0]) & (ii < columns[g, 1]) & (jj >= rows[g, 0]) & (jj < rows[g, 1])
            left = T * (1 - alpha)
            ends = shows & ((left <= n["left"]) if self.at_or_below else (left < n["left"]))
            ended |= ends & (n["state"] > 0)
            shows &= ~ends
            colour += np.where(shows, T * alpha, 0)[..., None] * rgb[g]
            T = np.where(shows, left, T)
        return np.concatenate([colour, 1 - T[..., None]], axis=2), int(visible.sum())
