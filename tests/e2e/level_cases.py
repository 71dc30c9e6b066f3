"""The python of tests/e2e/level.t: `py FUNCTION [argument...]` of tests/cases.sh calls one of these."""
import json, sys


def near_and_far():
    c = json.load(open("s/cameras.json"))[0]
    for name, z in ("near", 0.4), ("far", 12):
        c["t"] = [c["t"][0], c["t"][1], z]
        json.dump([c], open(name + ".json", "w"))


def against(path):
    r = json.load(open(path))
    t = r["levels_against"]
    assert [l["level"] for l in t] == list(range(1, len(t) + 1)) and len(t) >= 5, t
    assert all(l["views"] == 1 and l["equal"] == 0 and 10 < l["psnr"] < 60 for l in t), t
    assert t[0]["psnr"] > t[3]["psnr"] and t[0]["rows"] > 1.9 * t[1]["rows"], t
    assert all(v["full_file"].split("/")[-2] == "full_%d" % v["level"] for v in r["views"])


def one_row():
    data = open("s/scene.ply", "rb").read()
    end = data.index(b"end_header\n") + 11
    head = data[:end].replace(b"vertex 6000", b"vertex 1")
    open("one/scene.ply", "wb").write(head + data[end : end + (len(data) - end) // 6000])


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
