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


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
