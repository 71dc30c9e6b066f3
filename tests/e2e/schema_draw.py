"""What tests/e2e/schema_draw.t checks: a picture of a bake that is drawn by schema/SCHEMA.md alone.

schema_draw.py MANIFEST CAMERA PICTURE.npy PROFILE ANTIALIASED: draws the camera by the section "Drawing", with the page's reader, its
table of profiles and its basis of spherical harmonics. Fails where kiln-render's picture is less than 90 dB from that: in float64 a
value at a threshold may fall on the other side, in one pixel or two.
schema_draw.py --vary ...: also with one number changed at a time, of which each must be seen in the picture.
schema_draw.py --scene PLY: gives a generated scene degree 4, and tiny opaque Gaussians before the first camera."""
import os
import re
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

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from schema_page import Page  # noqa: E402 -- it lies beside this file

vary = sys.argv[1] == "--vary"
manifest, camera, picture, profile, antialiased = sys.argv[2:] if vary else sys.argv[1:]
antialiased = int(antialiased)
page = Page(manifest, camera, profile, antialiased)
numbers, draw, shN = page.numbers, page.draw, page.shN


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
