"""The python of tests/e2e/export.t: `py FUNCTION [argument...]` of tests/cases.sh calls one of these."""
import array, json, random, sqlite3, struct, sys


def wide(path):
    random.seed(1)
    with open(path, "wb") as f:
        f.write(
            b"ply\nformat binary_little_endian 1.0\ncomment survey\nelement vertex 70000\nproperty double "
            b"x\nproperty double y\n"
            b"property double z\nproperty uchar red\nproperty uchar green\nproperty uchar blue\nend_header\n"
        )
        for i in range(70000):
            f.write(
                struct.pack(
                    "<3d3B", 5e5 + 50 * random.random(), 4e6 + 40 * random.random(), 10 * random.random(), i & 255, 7, 9
                )
            )


def stranger_index(path):
    index = json.load(open(path))
    planes = index["chunks"][0]["planes"]
    for i, name in enumerate(["x/key", "notes.txt", "%032d.bin" % 7]):
        planes["extra/%d" % i] = dict(next(iter(planes.values())), file=name)
    json.dump(index, open(path, "w"))


def rows_of(path):
    b = open(path, "rb").read()
    at = b.index(b"end_header\n") + 11
    n = int(b[b.index(b"element vertex ") + 15 :].split(b"\n")[0])
    size = (len(b) - at) // n
    return [b[at + i * size : at + (i + 1) * size] for i in range(n)]


def in_source_order(tmp):
    source, some = rows_of(tmp + "/all.ply"), rows_of(tmp + "/some_source.ply")
    place = {row: i for i, row in enumerate(source)}
    assert len(place) == len(source) > 65536 and 9000 < len(some) < len(source) / 2
    assert some == sorted(rows_of(tmp + "/some_baked.ply"), key=place.get)
    assert rows_of(tmp + "/two.ply") == source + source


def same_rows(tmp):
    source, baked, part = (rows_of(tmp + name) for name in ("/export/scene.ply", "/b.ply", "/part.ply"))
    assert source != baked and sorted(source) == sorted(baked)
    index = json.load(open(tmp + "/raw/index.json"))
    counts = [c["count"] for c in index["chunks"]]
    assert part == baked[: counts[0]] + baked[sum(counts[:2]) : sum(counts[:3])]
    at = 0
    for c in index["chunks"]:

        def plane(name, code):
            p = c["planes"][name]
            a = array.array(code, open(tmp + "/raw/" + p["file"], "rb").read())
            assert len(a) == c["count"] * p["components"] and a.itemsize * len(a) == p["bytes"]
            return a

        means, row = plane("means", "f"), plane("source_row", "I")
        for i in range(c["count"]):
            for axis in range(3):
                x = array.array("f", baked[at + i][4 * axis : 4 * axis + 4])[0]
                assert x == means[axis * c["count"] + i] and c["box_min"][axis] <= x <= c["box_max"][axis]
            assert source[row[i]] == baked[at + i]
        at += c["count"]
    assert at == len(source)


def change(path, what):
    sqlite3.connect(path, isolation_level=None).execute("UPDATE scene SET " + what)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
