"""The python of tests/e2e/sog_export.t: `py FUNCTION [argument...]` of tests/cases.sh calls one of these."""
import csv, json, math, struct, sys, zipfile


def values_and_archive():
    data = open("3.sog", "rb").read()
    assert data[-22:-18] == b"PK\5\6" and data[-2:] == b"\0\0", "the end record is not at the end"
    z = zipfile.ZipFile("3.sog")
    assert z.testzip() is None and all(
        i.compress_type == 0 and i.flag_bits == 0 and i.date_time[0] == 1980 for i in z.infolist()
    )
    meta = json.loads(z.read("meta.json"))
    assert meta["version"] == 2 and meta["shN"]["count"] == 2048, meta["shN"]["count"]
    assert "shN" not in json.loads(zipfile.ZipFile("0.sog").read("meta.json"))
    assert "antialias" not in meta and "model" not in meta, "a scene that is not antialiased has the flag"

    def ply(path):
        head, body = open(path, "rb").read().split(b"end_header\n", 1)
        names = [l.split()[-1].decode() for l in head.split(b"\n") if l.startswith(b"property float")]
        return [dict(zip(names, r)) for r in struct.iter_unpack("<%df" % len(names), body)]

    def check_harmonics(want, got, degree):
        # of each channel the lowest coefficients, of which the palette holds most
        meta = json.loads(zipfile.ZipFile("%d.sog" % degree).read("meta.json"))
        k = (degree + 1) ** 2 - 1
        assert (
            meta["shN"]["bands"] == degree
            and "f_rest_%d" % (3 * k - 1) in got[0]
            and "f_rest_%d" % (3 * k) not in got[0]
        ), degree
        before = after = 0
        for w, g in zip(want, got):
            for i in range(3 * k):
                a, b = w["f_rest_%d" % (i // k * 15 + i % k)], g["f_rest_%d" % i]
                before += a * a
                after += (a - b) ** 2
        assert after < before / 2, ("the palette holds too little of the coefficients", degree, after / before)

    want, got = ply("b.ply"), ply("3.ply")
    for degree in 1, 2, 3:
        check_harmonics(want, ply("%d.ply" % degree), degree)
    assert "f_rest_0" not in ply("0.ply")[0]
    assert len(want) == len(got) == meta["count"] > 3000
    log = lambda x: math.copysign(math.log(abs(x) + 1), x)
    sigmoid = lambda v: 1 / (1 + math.exp(-v))
    for w, g in zip(want, got):
        for c, a in enumerate("xyz"):
            step = (meta["means"]["maxs"][c] - meta["means"]["mins"][c]) / 65535
            assert abs(log(w[a]) - log(g[a])) <= step / 2 + 1e-6, ("position", w[a], g[a])
        for key, book in (("scale_%d", "scales"), ("f_dc_%d", "sh0")):
            for i in range(3):
                a, b = w[key % i], g[key % i]
                best = min(abs(v - a) for v in meta[book]["codebook"])
                assert abs(a - b) <= best + 1e-6, (book, a, b)
        assert abs(sigmoid(w["opacity"]) - sigmoid(g["opacity"])) <= 0.75 / 255
        q, r = [w["rot_%d" % i] for i in range(4)], [g["rot_%d" % i] for i in range(4)]
        n, m = math.sqrt(sum(v * v for v in q)), math.sqrt(sum(v * v for v in r))
        dot = sum(a * b for a, b in zip(q, r)) / n / m
        sign = 1 if dot > 0 else -1
        assert max(abs(a / n - sign * b / m) for a, b in zip(q, r)) <= 3.1 / 255 / math.sqrt(2), ("rotation", q, r)


def flag(word):
    meta = json.load(open("mip/meta.json"))
    assert meta["model"] == "antialiased" and meta["antialias"] is True and meta["shN"]["bands"] == 3
    if word == "model":
        del meta["antialias"]
    if word == "antialias":
        del meta["model"]
    json.dump(meta, open("meta.json", "w"))


def kept(sample):
    def rows(p):
        r = list(csv.reader(open(p)))
        return r[0], [[float(v) for v in row] for row in r[1:]]

    (names, a), (_, b) = rows("x.csv"), rows("y.csv")
    assert len(a) == len(b)
    at = [names.index("rot_%d" % i) for i in range(4)]
    # splat-transform truncates, so that no row may have the greatest code and the bounds move: half a step then
    near = {n: 1e-6 if "golden" in sample or n not in "xyz" else 1e-4 for n in names}
    worst = {}
    for x, y in zip(a, b):
        q, r = [x[i] for i in at], [y[i] for i in at]
        dot = abs(sum(u * v for u, v in zip(q, r))) / (sum(u * u for u in q) * sum(v * v for v in r)) ** 0.5
        assert dot >= 1 - 2e-5, ("rotation", q, r)
        for i, (n, u, v) in enumerate(zip(names, x, y)):
            if i not in at:
                worst[n] = max(worst.get(n, 0), abs(u - v) / max(1, abs(u)))
    assert all(v <= near[n] for n, v in worst.items()), (sample, {n: v for n, v in worst.items() if v > near[n]})


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
