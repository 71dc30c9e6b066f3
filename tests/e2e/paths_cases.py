"""The python of tests/e2e/paths.t: `py FUNCTION [argument...]` of tests/cases.sh calls one of these."""
import struct, sys


def cropped():
    def read(name):
        raw = open(name, "rb").read()
        skip = 10 + struct.unpack("<H", raw[8:10])[0]
        return struct.unpack("<%df" % ((len(raw) - skip) // 4), raw[skip:])

    full, part = read("full.npy"), read("part.npy")
    assert len(full) == 96 * 64 * 4 and len(part) == 48 * 32 * 4
    for y in range(32):
        for x in range(48 * 4):
            assert part[y * 48 * 4 + x] == full[(y + 16) * 96 * 4 + 16 * 4 + x], (x, y)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
