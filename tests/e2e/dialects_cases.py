"""The python of tests/e2e/dialects.t: `py FUNCTION [argument...]` of tests/cases.sh calls one of these."""
import struct, sys


def logarithms():
    def rows(name):
        data = open(name, "rb").read()
        at = data.index(b"end_header\n") + 11
        n = [l.split()[2] for l in data[:at].decode().splitlines() if l.startswith("property")]
        return n, list(struct.iter_unpack("<%df" % len(n), data[at:]))

    n, a = rows("plain.ply")
    m, b = rows("logs.ply")
    assert n == m and len(a) == len(b)
    for x, y in zip(a, b):
        for c, u, v in zip(n, x, y):
            assert u == v or (c[:5] in ("scale", "opaci") and abs(u - v) < 2e-5 * (1 + abs(u))), (c, u, v)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
