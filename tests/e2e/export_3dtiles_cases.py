"""The python of tests/e2e/export_3dtiles.t: `py FUNCTION [argument...]` of tests/cases.sh calls one of these."""
import copy, json, struct, sys


def errors(path):
    t, seen = json.load(open(path))["root"], []
    while t.get("children"):
        seen, box, t = seen + [t["geometricError"]], t["boundingVolume"]["box"], t["children"][0]
    print(seen, box)
    assert max(box[3], box[7], box[11]) > seen[0] and seen[-1] > 0 and len(set(seen)) > 2, (seen, box)


def one_leaf(got_path, want_path):
    def ply(path):
        head, body = open(path, "rb").read().split(b"end_header\n", 1)
        names = [l.split()[-1].decode() for l in head.split(b"\n") if l.startswith(b"property float")]
        return [dict(zip(names, r)) for r in struct.iter_unpack("<%df" % len(names), body)]

    got, want = ply(got_path), ply(want_path)
    assert len(got) == len(want), (len(got), len(want))
    for g, w in zip(got, want):
        for name, sign in (("x", 1), ("y", -1), ("z", -1)):
            assert abs(g[name] - sign * w[name]) < 2e-3, (name, g[name], w[name])
        assert abs(g["scale_0"] - max(w["scale_0"], -10)) < 0.04, (g["scale_0"], w["scale_0"])


def break_tileset(path, folder):
    t = json.load(open(path))

    def save(name, change):
        c = copy.deepcopy(t)
        change(c)
        json.dump(c, open(f"{folder}/{name}.json", "w"))

    def leaf(c):
        at = c["root"]
        while "children" in at:
            at = at["children"][0]
        return at

    save("larger", lambda c: c["root"]["children"][0].update(geometricError=c["root"]["geometricError"] + 1))
    save("rest", lambda c: leaf(c).update(geometricError=1))
    save("gone", lambda c: leaf(c)["content"].update(uri="9_L0.glb"))
    save("box", lambda c: leaf(c)["boundingVolume"]["box"].__setitem__(3, 1e-4))
    save("old", lambda c: c["asset"].update(version="1.0"))


def on_the_globe(path):
    t = json.load(open(path))["root"]["transform"]
    assert abs(t[12] ** 2 + t[13] ** 2 + t[14] ** 2 - 6.367e6**2) < 1e12, t


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
