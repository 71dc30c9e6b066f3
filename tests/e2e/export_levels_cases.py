"""The python of tests/e2e/export_levels.t: `py FUNCTION [argument...]` of tests/cases.sh calls one of these."""
import csv, json, sqlite3, struct, sys


def inside(stats_path):
    stats = json.load(open(stats_path))["stats"][0]
    x = stats["columns"].index("x")
    assert stats["data"]["min"][x] < stats["data"]["max"][x] <= 0, stats["data"]["max"][x]


def table(path):
    with open(path) as f:
        return list(csv.DictReader(f))


def moved(a_path, b_path):
    a, b = table(a_path), table(b_path)
    assert len(a) == len(b) == 500 and "f_rest_0" in a[0] and "f_rest_0" not in b[0]
    for p, q in zip(a, b):
        assert p["source_row"] == q["source_row"] and abs(2 * float(p["x"]) - float(q["x"])) < 1e-5, (p, q)
    assert len({p["source_row"] for p in a}) == 500  # each stands for rows of its own


def split(path):
    head, body = open(path, "rb").read().split(b"end_header\n", 1)
    names = [l.split()[2] for l in head.decode().splitlines() if l.startswith("property float ")]
    n = int([l.split()[2] for l in head.decode().splitlines() if l.startswith("element vertex")][0])
    return names, n, body


def add_column(from_path, to_path):
    """A PLY with normals that are not 0 and with a column of unknown meaning."""
    names, n, body = split(from_path)
    row = struct.Struct("<%df" % len(names))
    more = [c for c in ("nx", "ny", "nz") if c not in names] + ["weight_of_mine"]
    with open(to_path, "wb") as f:
        f.write(b"ply\nformat binary_little_endian 1.0\nelement vertex %d\n" % n)
        f.write("".join("property float %s\n" % c for c in names + more).encode() + b"end_header\n")
        for r in row.iter_unpack(body):
            values = [1.0 if c in ("nx", "ny", "nz") else v for c, v in zip(names, r)]
            f.write(struct.pack("<%df" % (len(names) + len(more)), *values, *[1.0] * len(more)))


def columns(source_path, path):
    wanted, names = split(source_path)[0], split(path)[0]
    assert names == [c for c in wanted if c != "weight_of_mine"], names
    row = struct.Struct("<%df" % len(names))
    for r in row.iter_unpack(split(path)[2]):
        assert all(r[names.index(c)] == 0 for c in ("nx", "ny", "nz"))


def cameras(manifest, path):
    db = sqlite3.connect("file:%s?mode=ro" % manifest, uri=True)
    db.row_factory = sqlite3.Row
    made = []
    for c in db.execute("SELECT * FROM camera ORDER BY name"):
        r = [[c["r%d%d" % (i, j)] for j in range(3)] for i in range(3)]
        at = [-sum(r[i][j] * c["t%d" % i] for i in range(3)) for j in range(3)]
        made.append(dict(id=0, img_name=c["name"].replace("/", "_"), width=c["width"], height=c["height"], fx=c["fx"],
                         fy=c["fy"], position=at, rotation=[[r[k][i] for k in range(3)] for i in range(3)]))
    json.dump(made, open(path, "w"))


def rising(*paths):
    mean = []
    for path in paths:
        pictures = json.load(open(path))["pictures"]
        mean.append(sum(99.0 if p["psnr"] is None else p["psnr"] for p in pictures) / len(pictures))
    assert all(a + 1 < b for a, b in zip(mean, mean[1:])), mean


def lossless(report_path):
    psnr = json.load(open(report_path))["psnr"]
    assert len(psnr) == 1 and all(v is None for v in psnr.values()), psnr  # null: the pictures are equal


def points(path):
    with open(path, "w") as f:
        f.write("ply\nformat ascii 1.0\nelement vertex 100\n")
        f.write("".join("property float %s\n" % c for c in "xyz"))
        f.write("".join("property uchar %s\n" % c for c in ("red", "green", "blue")) + "end_header\n")
        for i in range(100):
            f.write("%d %d %d %d 0 0\n" % (i % 5, i // 5 % 5, i // 25, i))


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
