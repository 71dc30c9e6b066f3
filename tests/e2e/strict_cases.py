"""The python of tests/e2e/strict.t: `py FUNCTION [argument...]` of tests/cases.sh calls one of these."""
import math, struct, sys


def rows(name):
    data = open(name, "rb").read()
    at = data.index(b"end_header\n") + 11
    n = [l.split()[2] for l in data[:at].decode().splitlines() if l.startswith("property")]
    return [dict(zip(n, r)) for r in struct.iter_unpack("<%df" % len(n), data[at:])]


def values():
    for a, b in zip(rows("plain.ply"), rows("plain.inria.ply")):
        for c in a:
            if not c.startswith("f_rest"):
                assert a[c] == b[c], c
        for i in range(45):  # channel after channel: 3 coefficients of degree 1, then zeros
            channel, k = divmod(i, 15)
            assert b[f"f_rest_{i}"] == (a[f"f_rest_{channel * 3 + k}"] if k < 3 else 0), i
        assert b["nx"] == b["ny"] == b["nz"] == 0
    for b in rows("degree4.inria.ply"):
        assert all(abs(b[f"f_rest_{i}"] - (i // 15 * 24 + i % 15) / 100) < 1e-6 for i in range(45))


def version_2():
    a, b = rows("v2.ply"), rows("v3.ply")
    assert len(a) == len(b) == 300
    for x, y in zip(a, b):
        assert all(x[c] == y[c] for c in x if not c.startswith("rot")), (x, y)
        q, r = [[v[f"rot_{i}"] for i in range(4)] for v in (x, y)]
        dot = abs(sum(u * v for u, v in zip(q, r))) / math.hypot(*q) / math.hypot(*r)
        assert dot > 1 - 5e-3, dot  # w comes of x, y and z, whose steps are 1 / 127.5
    key = lambda r: tuple(r.values())
    assert sorted(map(key, a)) == sorted(map(key, rows("again.ply"))), "codes do not come back"


def importance():
    for name in ("plain", "ties"):
        data = open(name + ".baked.ply", "rb").read()
        at = data.index(b"end_header\n") + 11
        n = [l.split()[2] for l in data[:at].decode().splitlines() if l.startswith("property")]
        rows = [dict(zip(n, r)) for r in struct.iter_unpack("<%df" % len(n), data[at:])]
        data = open(name + ".splat", "rb").read()
        got, weight = [], {}
        for i in range(0, len(data), 32):  # by what stands in the file
            v = struct.unpack_from("<6f3xB", data, i)
            got.append(v[:3])
            weight[v[:3]] = v[3] * v[4] * v[5] * v[6]
        best = sorted(
            ((r["x"], r["y"], r["z"]) for r in rows), key=lambda p: -weight[p]
        )  # stable: ties in the order of the layer
        assert len(weight) == len(rows) and best == got, name
        true = {
            (r["x"], r["y"], r["z"]): math.exp(sum(r[f"scale_{i}"] for i in range(3))) / (1 + math.exp(-r["opacity"]))
            for r in rows
        }
        assert min(true[p] for p in got[:30]) > max(true[p] for p in got[-30:]), name


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
