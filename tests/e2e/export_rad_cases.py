"""The python of tests/e2e/export_rad.t: `py FUNCTION [argument...]` of tests/cases.sh calls one of these."""
import json, math, struct, sys, zlib

sys.path.insert(0, "tests/validators")
import rad


def rows_of_bake(rad_path, ply_path):
    data = open(rad_path, "rb").read()
    meta, start = rad.head_at(data, 0, b"RAD0")
    assert len(meta["chunks"]) == 1
    text, at = rad.head_at(data, start, b"RADC")
    planes = {
        p["property"]: (p, zlib.decompress(data[at + 8 + p["offset"] : at + 8 + p["offset"] + p["bytes"]], -15))
        for p in text["properties"]
    }
    n = text["count"]
    raw = planes["center"][1]
    centre = lambda i: tuple(
        struct.unpack("<f", bytes(raw[b * 3 * n + d * n + i] for b in range(4)))[0] for d in range(3)
    )
    half = lambda name, i, d: struct.unpack_from("<e", planes[name][1], 2 * (d * n + i))[0]
    counts, starts = struct.unpack(f"<{n}H", planes["child_count"][1]), struct.unpack(
        f"<{n}I", planes["child_start"][1]
    )

    def quat(i):
        u, v, r = planes["orientation"][1][3 * i : 3 * i + 3]
        x, y = u / 255 * 2 - 1, v / 255 * 2 - 1
        z = 1 - abs(x) - abs(y)
        t = max(-z, 0)
        x, y = x - math.copysign(t, x), y - math.copysign(t, y)
        l = math.sqrt(x * x + y * y + z * z)
        half = r / 255 * math.pi / 2
        return math.cos(half), *(math.sin(half) * c / l for c in (x, y, z))

    head, body = open(ply_path, "rb").read().split(b"end_header\n", 1)
    names = [l.split()[-1].decode() for l in head.split(b"\n") if l.startswith(b"property float")]
    ply = {}
    for r in struct.iter_unpack("<%df" % len(names), body):
        r = dict(zip(names, r))
        ply[r["x"], r["y"], r["z"]] = r
    leaves = [i for i in range(n) if counts[i] == 0]
    for i in leaves:
        w = ply[centre(i)]
        for d in range(3):
            assert abs(half("scales", i, d) - w[f"scale_{d}"]) < 0.01, ("scale", i)
            assert abs(half("rgb", i, d) - (0.5 + 0.28209479 * w[f"f_dc_{d}"])) < 0.002, ("colour", i)
        assert abs(half("alpha", i, 0) - 1 / (1 + math.exp(-w["opacity"]))) < 0.001, ("opacity", i)
        q = [w[f"rot_{k}"] for k in range(4)]
        dot = abs(sum(a * b for a, b in zip(q, quat(i)))) / math.sqrt(sum(a * a for a in q))
        assert dot > math.cos(0.02), ("rotation", i, q, quat(i))
    p, codes = planes["sh1"]
    for i in leaves[:200]:
        w = ply[centre(i)]
        per = len([k for k in w if k.startswith("f_rest_")]) // 3
        for k in range(3):
            for c in range(3):
                code = struct.unpack_from("<b", codes, (3 * k + c) * n + i)[0]
                want = max(-p["max"], min(p["max"], w[f"f_rest_{c * per + k}"]))
                assert abs(code / 127 * p["max"] - want) <= p["max"] / 250, ("sh", i, k, c)
    # A row above lies among its rows: within a few of its own axes of their middle.
    far = 0
    for i in range(n):
        if counts[i] < 2:
            continue
        middle = [sum(centre(c)[d] for c in range(starts[i], starts[i] + counts[i])) / counts[i] for d in range(3)]
        size = math.exp(max(half("scales", i, d) for d in range(3)))
        far += math.dist(middle, centre(i)) > 3 * size
    assert far < n / 500, f"{far} of {n} rows lie far from their children"


def break_file(path, folder):
    data = bytearray(open(path, "rb").read())
    meta, start = rad.head_at(data, 0, b"RAD0")
    text, at = rad.head_at(data, start, b"RADC")

    def save(name, bytes_):
        open(f"{folder}/broken_{name}.rad", "wb").write(bytes_)

    save("magic", b"RAD1" + data[4:])
    save("short", data[:-8])
    save("long", data + bytes(8))
    p = [p for p in text["properties"] if p["property"] == "child_start"][0]
    where = at + 8 + p["offset"]
    starts = bytearray(zlib.decompress(data[where : where + p["bytes"]], -15))
    for name, value in (("cycle", 0), ("two", struct.unpack_from("<I", starts, 4)[0])):
        other = bytearray(starts)
        struct.pack_into("<I", other, 8 if name == "two" else 4, value)
        c = zlib.compressobj(9, zlib.DEFLATED, -15, 9)
        packed = c.compress(bytes(other)) + c.flush()
        if len(packed) > rad.up8(p["bytes"]):
            continue
        # the stream may be shorter: the text says how long
        old = json.dumps(p, separators=(",", ":")).encode()
        new = json.dumps(dict(p, bytes=len(packed)), separators=(",", ":")).encode()
        changed = bytearray(data)
        changed[where : where + rad.up8(p["bytes"])] = packed + bytes(rad.up8(p["bytes"]) - len(packed))
        i = changed.index(old)
        if len(new) == len(old) and rad.up8(len(packed)) == rad.up8(p["bytes"]):
            changed[i : i + len(old)] = new
            save(name, changed)
    plane = bytearray(data)
    plane[where + 3] ^= 0x55
    save("plane", plane)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
