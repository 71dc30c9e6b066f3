"""The python of tests/e2e/stats.t: `py FUNCTION [argument...]` of tests/cases.sh calls one of these."""
import json, math, struct, sys

# What kiln-stats shows of a stored number.
shown = {"opacity": lambda v: 1 / (1 + math.exp(-v)), "scale_1": math.exp, "f_dc_2": lambda v: 0.5 + 0.28209479177387814 * v}


def statistics(path):
    return json.load(open(path))["stats"][0]


def close(a, b):
    return abs(a - b) <= 1e-9 + 1e-6 * abs(b)


def read_ply(path):
    """Its number of rows, the names of its columns, and all its floats, row by row."""
    data = open(path, "rb").read()
    end = data.index(b"end_header\n") + 11
    head = [l.split() for l in data[:end].decode().split("\n")]
    names = [l[2] for l in head if l[:1] == ["property"]]
    n = next(int(l[2]) for l in head if l[:2] == ["element", "vertex"])
    return n, names, struct.unpack_from("<%df" % (n * len(names)), data, end)


def column_is(name, d, c, values):
    """Column c of the numbers d are those of the sorted values."""
    n, as_shown = len(values), shown.get(name, lambda v: v)
    assert close(d["min"][c], as_shown(values[0])) and close(d["max"][c], as_shown(values[-1])), name
    for q, numbers in d["quantiles"].items():
        rank = max(0, math.ceil(round(float(q) * 1000) * n / 1000) - 1)
        assert close(numbers[c], as_shown(values[rank])), (name, q, numbers[c], as_shown(values[rank]))
    assert close(d["median"][c], as_shown(values[math.ceil(n / 2) - 1]))
    mean = math.fsum(values) / n
    assert close(d["stdDev"][c], math.sqrt(math.fsum((v - mean) ** 2 for v in values) / n)), name
    assert sum(d["histogram"][c]) == n and len(d["histogram"][c]) == 16
    width = (values[-1] - values[0]) / 16
    assert abs(d["histogram"][c][3] - sum(3 <= (v - values[0]) / width < 4 for v in values)) <= 1, name


def numbers(ply, out):
    n, names, rows = read_ply(ply)
    document = json.load(open(out))
    of, d = document["stats"][0], document["stats"][0]["data"]
    assert document["numGaussians"] == n == of["numGaussians"]
    assert document["shBands"] == 3 and document["format"] == "ply"
    assert set(of["columns"]) == set(names), set(of["columns"]) ^ set(names)
    for name in ["x", "z", "rot_2", "opacity", "scale_1", "f_dc_2", "f_rest_17"]:
        column_is(name, d, of["columns"].index(name), sorted(rows[names.index(name)::len(names)]))
    assert sum(d["nanCount"]) == sum(d["infCount"]) == 0 and 0 < of["fillRatio"] < 1e6


def same_numbers(a, b):
    assert json.load(open(a))["stats"] == json.load(open(b))["stats"]


def not_finite(out):
    of = statistics(out)
    count = lambda what, name: of["data"][what][of["columns"].index(name)]
    assert count("nanCount", "x") == 1 and count("infCount", "scale_0") == 1 and count("infCount", "opacity") == 1
    assert sum(of["data"]["nanCount"] + of["data"]["infCount"]) == 3 and sum(count("histogram", "x")) == 69999


def far(folder):
    """A point cloud at UTM coordinates, in floats and in doubles: 12 m wide but for one stray point, and flat."""
    for kind, code in (("float", "f"), ("double", "d")):
        rows = [(3.9e6 + (i % 97) / 8, 5e5 + i / 1024, 1234567) for i in range(1000)] + [(9e6, 5e5, 1234567)]
        head = "ply\nformat binary_little_endian 1.0\nelement vertex %d\n" % len(rows)
        head += "".join("property %s %s\n" % (kind, c) for c in "xyz") + "end_header\n"
        with open("%s/far_%s.ply" % (folder, kind), "wb") as f:
            f.write(head.encode() + b"".join(struct.pack("<3" + code, *r) for r in rows))


def table(out):
    """The columns of the table are as wide as the header's; 1 %, median and 99 % differ; a flat column is told in full."""
    lines = [l for l in open(out) if l.split()[:1] in (["column"], ["x"], ["y"], ["z"])]
    cells = {l.split()[0]: l.split()[1:6] for l in lines}
    assert len(set(cells["x"][1:4])) == 3 and len(set(cells["y"])) >= 3, cells
    assert cells["z"] == ["1234567"] * 5, cells
    assert len({l.index(c) + len(c) for l, c in ((lines[0], "max"), (lines[1], cells["x"][4]))}) == 1, lines


def even(folder):
    """Gaussians of one size: its logarithm in float32 stands for 0.01 but for the last bits."""
    columns = "x y z f_dc_0 f_dc_1 f_dc_2 opacity scale_0 scale_1 scale_2 rot_0 rot_1 rot_2 rot_3".split()
    head = "ply\nformat binary_little_endian 1.0\nelement vertex 100\n"
    head += "".join("property float %s\n" % c for c in columns) + "end_header\n"
    size = math.log(0.01)
    rows = [(i / 7, i % 9, i % 11, 0, 0, 0, 2, size, size, size, 1, 0, 0, 0) for i in range(100)]
    with open("%s/even.ply" % folder, "wb") as f:
        f.write(head.encode() + b"".join(struct.pack("<14f", *r) for r in rows))


def far_numbers(out, ply):
    """Extremes and quantiles are the stored numbers, and of doubles within a float's step of 1 m."""
    double = "property double" in open(ply, "rb").read(200).decode("latin1")
    data = open(ply, "rb").read()
    end = data.index(b"end_header\n") + 11
    rows = struct.unpack_from("<%d%s" % (3003, "d" if double else "f"), data, end)
    of, d = json.load(open(out))["stats"][0], json.load(open(out))["stats"][0]["data"]
    for a, name in enumerate("xy"):
        c, values = of["columns"].index(name), sorted(rows[a::3])
        want = [values[0], values[500], values[989]]
        got = [d["min"][c], d["median"][c], d["quantiles"]["0.98"][c]]
        want[2] = values[math.ceil(0.98 * len(values)) - 1]
        assert all(abs(g - w) <= 1e-5 if double else g == w for g, w in zip(got, want)), (name, got, want)
        assert abs(d["mean"][c] - math.fsum(values) / len(values)) < 1e-2, name


def same_columns(a, b):
    a, b = statistics(a), statistics(b)
    for name in "xyz":
        for what in ["min", "max", "median", "histogram"]:
            of_a = a["data"][what][a["columns"].index(name)]
            of_b = b["data"][what][b["columns"].index(name)]
            assert of_a == of_b, (name, what, of_a, of_b)


def layer(of_layer, of_file):
    a, b = statistics(of_layer), statistics(of_file)
    for name in ["x", "opacity", "f_rest_44"]:
        for what in ["min", "max", "median", "histogram"]:
            of_a = a["data"][what][a["columns"].index(name)]
            assert of_a == b["data"][what][b["columns"].index(name)], (name, what)


def pairs(tiles, of_layer, of_file):
    tiles, layer, file = (json.load(open(f)) for f in (tiles, of_layer, of_file))
    want = [(c["visible"], c["pairs"], c["box_pairs"]) for c in tiles["cameras"]]
    get = lambda o: [(v["visible"], v["pairs"], v["box_pairs"]) for v in o["pairs"]]
    assert get(layer) == want, (get(layer), want)
    assert len(get(file)) == len(want), (get(file), want)
    assert all(a[0] >= b[0] > 0 for a, b in zip(get(file), want)), (get(file), want)
    assert file["profile"] == "gsplat-1.5"


def same_pairs(of_file, of_manifest):
    file, manifest = (json.load(open(f))["pairs"] for f in (of_file, of_manifest))
    assert file == manifest, (file, manifest)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
