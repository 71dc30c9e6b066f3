"""The python of tests/e2e/scratch_full.t: `py FUNCTION [argument...]` of tests/cases.sh calls one of these."""
import struct, sys


def ascii():
    head, body = open("s/scene.ply", "rb").read().split(b"end_header\n", 1)
    names = [line for line in head.splitlines() if line.startswith(b"property")]
    rows = 2000
    with open("ascii.ply", "wb") as f:
        f.write(b"ply\nformat ascii 1.0\nelement vertex %d\n" % rows + b"\n".join(names) + b"\nend_header\n")
        for row in struct.iter_unpack("<%df" % len(names), body[: 4 * len(names) * rows]):
            f.write((" ".join("%g" % v for v in row) + "\n").encode())


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
