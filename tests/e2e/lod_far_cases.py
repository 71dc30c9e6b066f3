"""The python of tests/e2e/lod_far.t: `py FUNCTION [argument...]` of tests/cases.sh calls one of these."""
import json, sys


def cameras(path, size_text):
    size = float(size_text)
    print(
        json.dumps(
            [
                dict(c, width=int(160 * size), height=int(120 * size), fx=130 * size, fy=130 * size)
                for c in json.load(open(path))
            ]
        )
    )


def as_good(db):
    x, p = float(db), [v["psnr"] or 99 for v in json.load(open("out"))["pictures"]]
    mean = sum(p) / len(p)
    assert x - 1 <= mean <= x + 5 and min(p) >= x - 3, (mean, min(p))


def root_error():
    tiles, leaf = json.load(open("tiles/tileset.json")), json.load(open("sog/lod-meta.json"))["tree"]
    while "children" in leaf:
        leaf = leaf["children"][0]
    print(tiles["root"]["geometricError"], tiles["geometricError"], leaf["errors"][-1])


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
