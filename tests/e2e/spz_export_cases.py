"""The python of tests/e2e/spz_export.t: `py FUNCTION [argument...]` of tests/cases.sh calls one of these."""
import random, struct, sys, zlib

from splat_columns import SPLAT_COLUMNS


def alike():
    random.seed(3)
    kinds = [" ".join("%.3f" % random.uniform(-1, 1) for _ in range(45)) for _ in range(16)]
    print("ply\nformat ascii 1.0\nelement vertex 3000")
    for name in (
        ["x", "y", "z", "f_dc_0", "f_dc_1", "f_dc_2"]
        + ["f_rest_%d" % i for i in range(45)]
        + ["opacity", "scale_0", "scale_1", "scale_2", "rot_0", "rot_1", "rot_2", "rot_3"]
    ):
        print("property float", name)
    print("end_header")
    for i in range(3000):
        print(i, 0, 0, 0, 0, 0, random.choice(kinds), 0, -3, -3, -3, "1 0 0 0")


def smaller(size):
    runs = zlib.compressobj(1, zlib.DEFLATED, -15, 9, zlib.Z_RLE)
    data = sys.stdin.buffer.read()
    sys.exit(2 * int(size) > len(runs.compress(data) + runs.flush()))


def edit(path, *values):
    b = bytearray(open("3.ply", "rb").read())
    at = b.index(b"end_header\n") + 11
    for i in range(0, len(values), 3):
        struct.pack_into("<f", b, at + 4 * (62 - 3) * int(values[i]) + 4 * int(values[i + 1]), float(values[i + 2]))
    open(path, "wb").write(b)


def at_place(*values):
    n, place, scale, far = int(values[0]), *map(float, values[1:4])
    names = SPLAT_COLUMNS
    with open("at.ply", "wb") as f:
        f.write(b"ply\nformat binary_little_endian 1.0\nelement vertex %d\n" % n)
        f.write(b"".join(b"property float %s\n" % c.encode() for c in names) + b"end_header\n")
        for i in range(n):
            f.write(
                struct.pack(
                    "<14f", place + (far if i < 5 else 0), place, place, i / n, 0, 0, 1, scale, scale, scale, 1, 0, 0, 0
                )
            )


def lies_at(place):
    b = open("again.ply", "rb").read()
    x = struct.unpack_from("<3f", b, b.index(b"end_header\n") + 11)
    assert all(abs(v - float(place)) <= 1e-3 * max(abs(v), 1e-3) for v in x), x


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
