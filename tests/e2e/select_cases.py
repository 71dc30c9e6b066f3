"""The python of tests/e2e/select.t: `py FUNCTION [argument...]` of tests/cases.sh calls one of these."""
import array, math, random, struct, sys


def read(path):
    head, body = open(path, "rb").read().split(b"end_header\n", 1)
    names = [l.split()[2].decode() for l in head.splitlines() if l.startswith(b"property")]
    flat = array.array("f")
    flat.frombytes(body)
    n = len(names)
    return names, [tuple(flat[i : i + n]) for i in range(0, len(flat), n)]


def sigmoid(v):
    return 1 / (1 + math.exp(-v))


def filters(folder):
    tmp = folder + "/"
    names, all = read(tmp + "s/scene.ply")
    x, y, z, opacity, scale, red, rest = (
        names.index(c) for c in ("x", "y", "z", "opacity", "scale_1", "f_dc_0", "f_rest_17")
    )
    edge = sorted(r[x] for r in all)[len(all) // 3]  # a border on which a row lies
    median = sorted(r[rest] for r in all)[len(all) // 2]
    cases = [
        ("--filter-box=%.17g,-,-1,-,0.5," % edge, lambda i, r: r[x] >= edge and r[z] >= -1 and r[y] <= 0.5),
        ("--filter-box=-,-,-,%.17g,-,-" % edge, lambda i, r: r[x] <= edge),
        ("--filter-sphere=0.5,-0.25,0,1.5", lambda i, r: (r[x] - 0.5) ** 2 + (r[y] + 0.25) ** 2 + r[z] ** 2 < 2.25),
        ("--filter-value=x,gt,%.17g" % edge, lambda i, r: r[x] > edge),
        ("--filter-value=opacity,gte,0.5", lambda i, r: sigmoid(r[opacity]) >= 0.5),
        ("--filter-value=opacity_raw,lt,1", lambda i, r: r[opacity] < 1),
        ("--filter-value=scale_1,lte,0.02", lambda i, r: math.exp(r[scale]) <= 0.02),
        ("--filter-value=red,lt,0.5", lambda i, r: 0.5 + 0.28209479177387814 * r[red] < 0.5),
        ("--filter-value=f_dc_0_raw,gt,0.25", lambda i, r: r[red] > 0.25),
        ("--filter-value=f_rest_17,eq,%.17g" % median, lambda i, r: r[rest] == median),
        ("--filter-value=source_row,neq,7", lambda i, r: i != 7),
        ("--filter-value=nx,gt,0", lambda i, r: r[names.index("nx")] > 0),
        (
            "--filter-value=source_row,lt,6000 --filter-value=opacity,gt,0.3 --filter-sphere=0,0,0,2 "
            "--filter-box=-,-,-,0.5,-,- --filter-box=-0.5,-,-,-,-,-",
            lambda i, r: i < 6000
            and sigmoid(r[opacity]) > 0.3
            and r[x] ** 2 + r[y] ** 2 + r[z] ** 2 < 4
            and -0.5 <= r[x] <= 0.5,
        ),
    ]
    for k, (options, keep) in enumerate(cases):
        with open(tmp + "case%d" % k, "wb") as out:
            for i, r in enumerate(all):
                if keep(i, r):
                    out.write(array.array("f", r).tobytes())
        print(k, options)


def degrees(folder):
    tmp = folder + "/"
    names, all = read(tmp + "s/scene.ply")
    cut, some = read(tmp + "f.ply")
    assert len(some) == len(all) and sum(c.startswith("f_rest") for c in cut) == 9
    for k in range(9):  # of each colour the first three of fifteen
        was, now = names.index("f_rest_%d" % (k // 3 * 15 + k % 3)), cut.index("f_rest_%d" % k)
        assert [r[was] for r in all] == [r[now] for r in some], k
    assert sorted(some) == sorted(read(tmp + "g.ply")[1])


def moved(folder):
    def read(path):
        head, body = open(path, "rb").read().split(b"end_header\n", 1)
        return list(struct.iter_unpack("<3d59f", body))

    ours, theirs = read(folder + "/f.ply"), read(folder + "/m.ply")
    assert len(ours) == len(theirs) == 8000
    for a, b in zip(ours, theirs):
        assert a[3:] == b[3:] and max(abs(p - q) for p, q in zip(a[:3], b[:3])) <= 1e-5, (
            a[:3],
            b[:3],
        )  # floats of 64 from the origins


def sources(folder):
    tmp = folder + "/"
    names, all = read(tmp + "t/scene.ply")
    random.seed(3)

    def write(path, names, rows, far):
        kinds = ["double" if far and c in "xyz" else "float" for c in names]
        with open(path, "wb") as out:
            out.write(
                (
                    "ply\nformat binary_little_endian 1.0\nelement vertex %d\n" % len(rows)
                    + "".join("property %s %s\n" % p for p in zip(kinds, names))
                    + "end_header\n"
                ).encode()
            )
            for r in rows:
                for kind, v in zip(kinds, r):
                    out.write(array.array(kind[0], [v]).tobytes())

    low = [c for c in names if not c.startswith("f_rest")]
    write(tmp + "p.ply", names + ["confidence", "mine"], [r + (0.5, 1) for r in all], False)
    write(
        tmp + "q.ply",
        ["label", "confidence"] + low,
        [(3, i) + tuple(v + 1e7 * (c == "y") for c, v in zip(names, r) if c in low) for i, r in enumerate(all)],
        True,
    )


def joined(folder):
    tmp = folder + "/"
    names, all = read(tmp + "t/scene.ply")
    head, body = open(tmp + "pq.ply", "rb").read().split(b"end_header\n", 1)
    columns = [l.split()[1:] for l in head.decode().splitlines() if l.startswith("property")]
    both = [c for _, c in columns]
    assert "confidence" in both and "mine" not in both and "label" not in both, both
    assert [k for k, c in columns if c in "xyz"] == ["double"] * 3
    rows = list(struct.iter_unpack("<" + "".join(k[0] for k, _ in columns), body))
    n = len(all)
    assert len(rows) == 2 * n
    at = {c: both.index(c) for c in both}
    for i, r in enumerate(all):
        a, b = rows[i], rows[n + i]
        assert (a[at["confidence"]], b[at["confidence"]]) == (0.5, i)
        for c, v in zip(names, r):
            if c in "xyz":
                assert abs(a[at[c]] - v) <= 1 and abs(b[at[c]] - v - 1e7 * (c == "y")) <= 2e-6, (
                    c,
                    a[at[c]],
                    b[at[c]],
                    v,
                )
            else:
                assert a[at[c]] == v and b[at[c]] == (0 if c.startswith("f_rest") else v), (c, i)


def own_column(folder):
    tmp = folder + "/"

    def read(path):
        head, body = open(path, "rb").read().split(b"end_header\n", 1)
        lines = head.decode().splitlines()
        n = int([l for l in lines if l.startswith("element vertex")][0].split()[2])
        return [l for l in lines if l.startswith("property")], [
            body[i * len(body) // n : (i + 1) * len(body) // n] for i in range(n)
        ]

    columns, all = read(tmp + "q.ply")
    same, some = read(tmp + "f.ply")
    assert same == columns and some == all[2990:2995] + all[2996:], len(some)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
