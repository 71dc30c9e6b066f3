"""The python of tests/e2e/exposure.t: `py FUNCTION [argument...]` of tests/cases.sh calls one of these."""
import json, sys
from picture import *


E = {
    "cam0": [[0.8, 0.1, 0, 0.02], [0, 0.7, 0, 0.05], [0.05, 0, 0.9, 0]],
    "cam1": [[0.6, 0, 0.2, 0.1], [0.1, 0.5, 0, 0.03], [0, 0.1, 0.7, 0.2]],
    "cam2": [[0.9, 0, 0, 0], [0, 0.9, 0, 0], [0, 0, 0.9, 0]],
    "cam3": [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]],
}


def photos():
    for name, e in E.items():
        width, height, pixels = read_npy(name + ".npy")
        rows = []
        for i, p in enumerate(pixels):
            q = [sum(p[k] * e[k][c] for k in range(3)) + e[c][3] for c in range(3)]
            rows.append(
                [255, 0, 255]
                if name == "cam0" and i % width < width // 2
                else [min(255, max(0, round(v * 255))) for v in q]
            )
        write_png("s/%s.png" % name, width, height, rows)
    json.dump({"./cam0.png" if n == "cam0" else n + ".png": e for n, e in E.items()}, open("s/exposure.json", "w"))


def as_exposed():
    for name in ("cam1", "cam2", "cam3"):
        w, h, drawn = read_png("m/renders/%s.png" % name)
        photo = read_png("s/%s.png" % name)[2]
        assert max(abs(a[c] - b[c]) for a, b in zip(drawn, photo) for c in range(3)) < 1.5 / 255, name


def alpha_exposed():
    w, h, drawn = read_png("m/renders/cam1.png")
    photo = read_png("s/cam1.png")[2]
    behind = [E["cam1"][c][3] for c in range(3)]  # the black background, exposed
    n = 0
    for a, b in zip(drawn, photo):
        if a[3] < 0.9:
            continue  # of a small alpha a code's rounding is large
        n += 1
        assert max(abs(a[c] * a[3] + behind[c] * (1 - a[3]) - b[c]) for c in range(3)) < 2.5 / 255, (a, b)
    assert n > 100


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
