"""The python of tests/e2e/join.t: `py FUNCTION [argument...]` of tests/cases.sh calls one of these."""
import sys


def labels(path):
    d = open(path, "rb").read()
    e = d.index(b"end_header\n") + 11
    row = (len(d) - e) // 5000
    assert b"property uchar label" in d[:e] and row * 5000 == len(d) - e
    names = [l.split() for l in d[:e].decode().split("\n") if l.startswith("property")]
    at = sum({"float": 4, "uchar": 1}[n[1]] for n in names[: [n[2] for n in names].index("label")])
    values = [d[e + i * row + at] for i in range(5000)]
    assert values == [9] * 2000 + [0] * 3000


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
