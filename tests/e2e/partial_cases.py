"""The python of tests/e2e/partial.t: `py FUNCTION [argument...]` of tests/cases.sh calls one of these."""
import struct, sys


def rows(path):
    with open(path, "wb") as f:
        f.write(
            b"ply\nformat binary_little_endian 1.0\nelement vertex 140000\nproperty float x\nproperty float "
            b"y\nproperty float z\nend_header\n"
        )
        for i in range(140000):
            f.write(struct.pack("<3f", float("nan") if i == 131072 else i % 97, i % 89, i % 83))


def two_blocks(folder):
    def body(name):
        b = open(folder + "/" + name, "rb").read()
        return b[b.index(b"end_header\n") + 11 :]

    rows, out = body("rows.ply"), body("o.ply")
    assert out == rows[: 65536 * 12] + rows[131073 * 12 :]


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
