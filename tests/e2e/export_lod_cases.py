"""The python of tests/e2e/export_lod.t: `py FUNCTION [argument...]` of tests/cases.sh calls one of these."""
import copy, json, struct, sys


def levels_in_place(meta_path, finest, coarsest, baked):
    def ply(path):
        head, body = open(path, "rb").read().split(b"end_header\n", 1)
        names = [l.split()[-1].decode() for l in head.split(b"\n") if l.startswith(b"property float")]
        return [dict(zip(names, r)) for r in struct.iter_unpack("<%df" % len(names), body)]

    got, want = ply(finest), ply(baked)
    assert len(got) == len(want), (len(got), len(want))
    for g, w in zip(got, want):
        for name in "xyz":
            assert abs(g[name] - w[name]) < 2e-3 * (1 + abs(w[name])), (name, g[name], w[name])
        assert abs(g["f_dc_0"] - w["f_dc_0"]) < 0.1, (g["f_dc_0"], w["f_dc_0"])
    # The rows of a leaf lie in its bound: of the finest level as of the coarsest.
    meta = json.load(open(meta_path))
    leaves, todo = [], [meta["tree"]]
    while todo:
        n = todo.pop()
        leaves += [n] if "lods" in n else []
        todo += n.get("children", [])
    for k, rows in ((0, got), (meta["lodLevels"] - 1, ply(coarsest))):
        files = sorted({l["lods"][str(k)]["file"] for l in leaves if str(k) in l["lods"]})
        assert len(files) == 1, files
        for l in leaves:
            part = l["lods"].get(str(k), {"offset": 0, "count": 0})
            for r in rows[part["offset"] : part["offset"] + part["count"]]:
                for a, name in enumerate("xyz"):
                    assert (
                        l["bound"]["min"][a] - 2e-3 * (1 + abs(r[name]))
                        <= r[name]
                        <= l["bound"]["max"][a] + 2e-3 * (1 + abs(r[name]))
                    ), (k, l["bound"], r)


def break_set(folder):
    t = json.load(open(folder + "/lod-meta.json"))

    def save(name, change):
        c = copy.deepcopy(t)
        change(c)
        json.dump(c, open(f"{folder}/{name}.json", "w"))

    def leaf(c):
        n = c["tree"]
        while "children" in n:
            n = n["children"][0]
        return n

    save("count", lambda c: c["counts"].__setitem__(0, c["counts"][0] + 1))
    save("offset", lambda c: leaf(c)["lods"]["0"].__setitem__("offset", 5))
    save("file", lambda c: leaf(c)["lods"]["0"].__setitem__("file", 99))
    save("missing", lambda c: c["filenames"].__setitem__(0, "9_9/meta.json"))
    save("bound", lambda c: leaf(c)["bound"]["min"].__setitem__(0, -1e9))
    save("child", lambda c: c["tree"]["children"].pop())
    save("away", lambda c: c["filenames"].__setitem__(0, "../meta.json"))


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
