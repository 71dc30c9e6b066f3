"""The python of tests/e2e/background.t: `py FUNCTION [argument...]` of tests/cases.sh calls one of these."""
import random, sys
from picture import *


def photos(behind_text, kind):
    random.seed(7)
    noise = lambda v, by: [c + random.uniform(-by, by) / 255 for c in v]
    for view in range(4):
        width, height, pixels = read_npy("cam%d.npy" % view)
        rows = []
        for i, p in enumerate(pixels):
            x, y = i % width, i // width
            if kind == "cut-out":
                a = p[3]
                rows.append([c / a if a else 0 for c in p[:3]] + [a])
            else:
                behind = eval(behind_text)
                rows.append([p[c] + (1 - p[3]) * behind[c] for c in range(3)] + ([1] if kind == "opaque" else []))
        write_png("s/cam%d.png" % view, width, height, [[min(255, max(0, round(v * 255))) for v in r] for r in rows])


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
