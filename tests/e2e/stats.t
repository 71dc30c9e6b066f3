#!/bin/bash
# kiln-stats: numbers of columns as Python counts them, what is not finite, any format, a layer, and pairs as kiln-tiles counts them.
. tests/e2e/lib.sh
cd "$KILN_TMP" || exit 1
scene s 70000 2 96x64
ply=s/scene.ply
stats() { kiln stats "$@"; }
must 0 stats "$ply" --json
python3 - "$ply" out <<'PY' || fail 'numbers'
import json, math, struct, sys
data = open(sys.argv[1], "rb").read()
end = data.index(b"end_header\n") + 11
head = [l.split() for l in data[:end].decode().split("\n")]
names = [l[2] for l in head if l[:1] == ["property"]]
n = next(int(l[2]) for l in head if l[:2] == ["element", "vertex"])
told = json.load(open(sys.argv[2]))
of, d = told["stats"][0], told["stats"][0]["data"]
assert told["numGaussians"] == n == of["numGaussians"] and told["shBands"] == 3 and told["format"] == "ply"
assert set(of["columns"]) == set(names), set(of["columns"]) ^ set(names)
rows = struct.unpack_from("<%df" % (n * len(names)), data, end)
say = {"opacity": lambda v: 1 / (1 + math.exp(-v)), "scale_1": math.exp, "f_dc_2": lambda v: 0.5 + 0.28209479177387814 * v}
for name in ["x", "z", "rot_2", "opacity", "scale_1", "f_dc_2", "f_rest_17"]:
    c, values, as_told = of["columns"].index(name), sorted(rows[names.index(name)::len(names)]), say.get(name, lambda v: v)
    close = lambda a, b: abs(a - b) <= 1e-9 + 1e-6 * abs(b)
    assert close(d["min"][c], as_told(values[0])) and close(d["max"][c], as_told(values[-1])), name
    for q, numbers in d["quantiles"].items():
        rank = max(0, math.ceil(round(float(q) * 1000) * n / 1000) - 1)
        assert close(numbers[c], as_told(values[rank])), (name, q, numbers[c], as_told(values[rank]))
    assert close(d["median"][c], as_told(values[math.ceil(n / 2) - 1]))
    mean = math.fsum(values) / n
    assert close(d["stdDev"][c], math.sqrt(math.fsum((v - mean) ** 2 for v in values) / n)), name
    assert sum(d["histogram"][c]) == n and len(d["histogram"][c]) == 16
    width = (values[-1] - values[0]) / 16
    assert abs(d["histogram"][c][3] - sum(3 <= (v - values[0]) / width < 4 for v in values)) <= 1, name
assert sum(d["nanCount"]) == sum(d["infCount"]) == 0 and 0 < of["fillRatio"] < 1e6
PY
cp out whole
for threads in 1 3; do # the same numbers
    must 0 stats "$ply" --json --threads $threads
    python3 -c 'import json, sys; a, b = (json.load(open(f)) for f in sys.argv[1:]); sys.exit(a["stats"] != b["stats"])' out whole || fail "other numbers with $threads threads"
done
[ "$(ls -A)" = "$(printf '%s\n' err out s whole)" ] || fail "something is left: $(ls -A)"

# numbers that are not finite
cp "$ply" bad.ply
edit_ply bad.ply x 3 'float("nan")'; edit_ply bad.ply scale_0 5 'float("inf")'; edit_ply bad.ply opacity 6 'float("-inf")'
must 0 stats bad.ply --json
python3 - out <<'PY' || fail 'numbers that are not finite'
import json, sys
of = json.load(open(sys.argv[1]))["stats"][0]
count = lambda what, name: of["data"][what][of["columns"].index(name)]
assert count("nanCount", "x") == 1 and count("infCount", "scale_0") == 1 and count("infCount", "opacity") == 1
assert sum(of["data"]["nanCount"] + of["data"]["infCount"]) == 3 and sum(count("histogram", "x")) == 69999
PY

# other formats, a layer
must 0 "$KILN_BIN/kiln" convert --quiet "$ply" x.spz
must 0 stats x.spz
grep -q '^x.spz: spz, 70000 Gaussians of SH degree 3$' out && grep -q '^scale_2 ' out && grep -q '^fill ratio' out || fail "$(cat out)"
kiln import s s.db >/dev/null || fail import
must 0 stats s.db --json
python3 - out whole <<'PY' || fail 'a layer has other numbers than its file'
import json, sys
a, b = (json.load(open(f))["stats"][0] for f in sys.argv[1:])
for name in ["x", "opacity", "f_rest_44"]:
    for what in ["min", "max", "median", "histogram"]:
        assert a["data"][what][a["columns"].index(name)] == b["data"][what][b["columns"].index(name)], (name, what)
PY

# pairs: those of kiln-tiles on the same cameras
for stage in knn prune chunk; do kiln $stage s.db >/dev/null || fail $stage; done
must 0 kiln tiles s.db --predict --profile gsplat-1.5 --json; cp out tiles
must 0 stats s.db --layer baked --pairs own --json; cp out of_layer
must 0 stats "$ply" --cameras s/cameras.json --pairs own --json
python3 - tiles of_layer out <<'PY' || fail 'other pairs than kiln-tiles counts'
import json, sys
tiles, layer, file = (json.load(open(f)) for f in sys.argv[1:])
want = [(c["visible"], c["pairs"], c["box_pairs"]) for c in tiles["cameras"]]
get = lambda o: [(v["visible"], v["pairs"], v["box_pairs"]) for v in o["pairs"]]
assert get(layer) == want, (get(layer), want)
assert len(get(file)) == len(want) and all(a[0] >= b[0] > 0 for a, b in zip(get(file), want)), (get(file), want)
assert file["profile"] == "gsplat-1.5"
PY
must 0 stats "$ply" --pairs 512x512
grep -q '^orbit_7 ' out && grep -q "^gsplat-1.5 lists [0-9]* pairs in 'orbit_[0-7]' at 512 x 512" out || fail "$(cat out)"
grep -q '^the average Gaussian covers 0.[0-9]* % of that picture, as in sound scenes$' out || fail "a sound scene: $(cat out)"
scene exploded 2000 1 16x16 --explode 400 --explode-by 6
must 0 stats exploded/scene.ply --pairs 512x512 --profile gsplat-1.5
grep -q '^the average Gaussian covers [1-9][0-9.]* % of that picture, as exploded scales do' out || fail "exploded scales: $(cat out)"
must 2 stats "$ply" --pairs 512
must 2 stats "$ply" --cameras s/cameras.json
must 3 stats none.ply
must 3 stats s/cameras.json
