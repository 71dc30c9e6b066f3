"""The python of tests/e2e/limits.t: `py FUNCTION [argument...]` of tests/cases.sh calls one of these."""
import json, random, struct, sys

from splat_columns import SPLAT_COLUMNS


def scenes():
    random.seed(3)
    names = SPLAT_COLUMNS
    near = lambda: [random.uniform(-1, 1) for _ in range(3)]
    far = lambda: [random.choice([-3e38, 3e38]) for _ in range(3)]

    def write(name, n, position, scale):
        with open(name + ".ply", "wb") as f:
            f.write(b"ply\nformat binary_little_endian 1.0\nelement vertex %d\n" % n)
            for column in names:
                f.write(b"property float %s\n" % column.encode())
            f.write(b"end_header\n")
            for i in range(n):
                f.write(struct.pack("<14f", *position(), 0.5, 0.1, -0.3, 2, *[scale] * 3, 1, 0, 0, 0))

    write("wide", 200, near, 87.9)
    write("far", 200, far, -4)
    write("both", 200, far, 87.9)
    write("place", 3, lambda: [3e38] * 3, -4)


def judge(count):
    for i in range(1, int(count) + 1):
        must = open("must%d" % i).read().strip()
        d = json.load(open("said%d" % i), parse_constant=lambda c: sys.exit("%s: %s is no JSON" % (must, c)))
        assert eval(must), (must, d)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
