"""The python of tests/e2e/prune_seen.t: `py FUNCTION [argument...]` of tests/cases.sh calls one of these."""
import json
import os
import re
import sqlite3
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
UNIT = 2**24


def look(page, mask):
    """Of each Gaussian of a picture: sums of alpha T and of alpha, the largest alpha T. First over all pixels, then over those of the
    mask, all without one."""
    n = page.numbers
    H, W = page.cam["height"], page.cam["width"]
    px, py, A, B, C, opacity, Z, columns, rows, visible = page.project(n)
    over = [None] if mask is None else [None, mask]
    sums = [tuple(np.zeros(len(px)) for _ in range(3)) for _ in over]
    T, ended = np.ones((H, W)), np.zeros((H, W), bool)
    det = np.maximum(A * C - B * B, 1e-300)
    reach2 = 2 * np.log(np.maximum(255.0 * opacity, 1)) * 1.001
    for g in page.order(n, Z, visible):
        rx, ry = np.sqrt(reach2[g] * C[g] / det[g]) + 1, np.sqrt(reach2[g] * A[g] / det[g]) + 1
        x0, x1 = max(0, int(px[g] - rx), int(columns[g, 0])), int(min(W, px[g] + rx + 1, columns[g, 1]))
        y0, y1 = max(0, int(py[g] - ry), int(rows[g, 0])), int(min(H, py[g] + ry + 1, rows[g, 1]))
        if x0 >= x1 or y0 >= y1:
            continue
        at = (slice(y0, y1), slice(x0, x1))
        dx = px[g] - (np.arange(x0, x1) + n["centre"])[None, :]
        dy = py[g] - (np.arange(y0, y1) + n["centre"])[:, None]
        power = -(A[g] * dx**2 + C[g] * dy**2) / 2 - B[g] * dx * dy
        alpha = np.minimum(n["max_alpha"], opacity[g] * np.exp(np.minimum(power, 0)))
        shows = (power <= 0) & (alpha >= n["least alpha"])
        of_alpha = np.where(shows, alpha, 0)
        shows &= ~ended[at]
        left = T[at] * (1 - alpha)
        ends = shows & ((left <= n["left"]) if page.at_or_below else (left < n["left"]))
        ended[at] |= ends
        shows &= ~ends
        of_weight = np.where(shows, alpha * T[at], 0)
        for pixels, (weights, alphas, peaks) in zip(over, sums):
            weight, of = (of_weight, of_alpha) if pixels is None else (of_weight * pixels[at], of_alpha * pixels[at])
            weights[g], alphas[g], peaks[g] = weight.sum(), of.sum(), weight.max()
        T[at] = np.where(shows, left, T[at])
    return sums[0], sums[-1]


def seen(manifest, masks):
    """By source row, of all training cameras: without masks, then with them."""
    from schema_page import Page

    db = sqlite3.connect(f"file:{manifest}?mode=ro", uri=True)
    totals = [None, None]
    for camera, in db.execute("SELECT name FROM camera WHERE split = 'train' ORDER BY name").fetchall():
        page = Page(manifest, camera, "inria", 0)
        mask = np.load(f"{masks}/{camera}.npy") if os.path.exists(f"{masks}/{camera}.npy") else None
        for k, (weights, alphas, peaks) in enumerate(look(page, mask)):
            t = totals[k] or (np.zeros(len(peaks)), np.zeros(len(peaks)), np.zeros(len(peaks)))
            totals[k] = t[0] + weights, t[1] + alphas, np.maximum(t[2], peaks)
    order = np.argsort(page.source_row)
    return [(page.source_row[order], *(a[order] for a in t)) for t in totals]


def source_rows(manifest):
    """Rows of the layer `pruned`."""
    from schema_page import reader

    array, db = reader(manifest)
    chunks = [c for c, in db.execute("SELECT DISTINCT chunk FROM plane_data WHERE layer = 'pruned' ORDER BY ordinal")]
    where = "plane_data WHERE layer = 'pruned' AND chunk = ? AND plane = 'source_row'"
    return np.concatenate([np.array(array("I", where, c)) for c in chunks])


def score(manifest, masks, out, out_masked):
    for path, of in zip((out, out_masked), seen(manifest, masks)):
        np.savez(path, **dict(zip(("rows", "weights", "alphas", "peaks"), of)))


def values_of(s, rule):
    return s["peaks"] if rule == "contribution" else s["weights"] / np.maximum(s["alphas"], 1e-12)


def limit(scores, rule):
    """One that drops most of the rows that cameras see, but not all."""
    values = values_of(np.load(scores), rule)
    print("%.3f" % np.quantile(values[values > 0], 0.8))


def dropped(scores, manifest, rule, limit):
    """Fails where other rows are dropped than the scores of schema_page.py say; rows within 1e-4 of the limit are counted."""
    s, limit = np.load(scores), float(limit)
    values = values_of(s, rule)
    stays = np.isin(s["rows"], source_rows(manifest))
    near = np.abs(values - limit) <= 1e-4 * limit
    wrong = ((values >= limit) != stays) & ~near
    print(f"{rule} {limit}: {int((~stays).sum())} of {len(stays)} dropped, {int(near.sum())} near the limit, {int(wrong.sum())} otherwise")
    assert not wrong.any(), (s["rows"][wrong][:10], values[wrong][:10])
    assert stays.sum() > 2000 and (~stays & (values > 0)).sum() > 2000 and near.sum() < 50, stays.sum()


def kept(scores, manifest, n):
    """The rows with the highest scores stay, of equal ones the first."""
    s, n = np.load(scores), int(n)
    value = keep_score(s)
    stays = np.isin(s["rows"], source_rows(manifest))
    assert stays.sum() == n, (int(stays.sum()), n)
    limit = np.sort(value)[::-1][n - 1]
    near = np.abs(value - limit) <= 1e-4 * limit
    wrong = ((value > limit) != stays) & ~near
    print(f"keep {n}: limit {limit:g}, {int(near.sum())} near it, {int(wrong.sum())} otherwise")
    assert not wrong.any() and (near.sum() < 50) == (limit > 0), value[wrong][:10]
    if limit == 0:  # of equal scores the first of the source
        assert (np.diff(stays[near].astype(int)) <= 0).all()


def keep_score(s):
    return s["peaks"]**2 * s["weights"]


def value(path, text):
    r = json.load(open(path))
    print(eval(text, {}, {"r": r}))


def make_masks(folder, width, height, *cameras):
    """Masks that leave out the left third, as pictures beside the photos, and as arrays for `look`."""
    for camera in cameras:
        for kind in "/masks/", "/":
            os.makedirs(os.path.dirname(folder + kind + camera), exist_ok=True)
        mask = np.zeros((int(height), int(width)), np.uint8)
        mask[:, int(width) // 3:] = 255
        write_png(f"{folder}/masks/{camera}.png", mask)
        np.save(f"{folder}/{camera}.npy", mask > 0)


def write_png(path, grey):
    import struct
    import zlib

    def part(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    height, width = grey.shape
    rows = b"".join(b"\0" + grey[y].tobytes() for y in range(height))
    with open(path, "wb") as f:
        f.write(b"\x89PNG\r\n\x1a\n" + part(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)))
        f.write(part(b"IDAT", zlib.compress(rows)) + part(b"IEND", b""))


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
