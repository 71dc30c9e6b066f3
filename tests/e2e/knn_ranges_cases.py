"""The python of tests/e2e/knn_ranges.t: `py FUNCTION [argument...]` of tests/cases.sh calls one of these."""
import os, struct, sys


def odd():
    rows = [(i % 40, i // 40 % 40, 0) for i in range(4000)] + [
        (1e5 + i % 30 * 0.25, i // 30 % 30, i // 900) for i in range(4000)
    ]
    rows += [(3e6, -1e7, 5), (-2e6, 0, 0), (0, 0, 4e4)]
    os.mkdir("odd")
    with open("odd/points.ply", "wb") as f:
        f.write(b"ply\nformat binary_little_endian 1.0\nelement vertex %d\n" % len(rows))
        f.write(b"property float x\nproperty float y\nproperty float z\nend_header\n")
        for row in rows:
            f.write(struct.pack("<3f", *row))


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
