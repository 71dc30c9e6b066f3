"""The python of tests/e2e/glb_ksplat.t: `py FUNCTION [argument...]` of tests/cases.sh calls one of these."""
import math, struct, sys

from splat_columns import SPLAT_COLUMNS


def values():
    def ply(path):
        data = open(path, "rb").read()
        head, body = data.split(b"end_header\n", 1)
        names = [l.split()[-1].decode() for l in head.split(b"\n") if l.startswith(b"property float")]
        n = int([l for l in head.split(b"\n") if l.startswith(b"element vertex")][0].split()[-1])
        assert len(body) == n * 4 * len(names)
        return n, names, [dict(zip(names, r)) for r in struct.iter_unpack("<%df" % len(names), body)]

    n, names, want = ply("b.ply")
    assert n > 1500 * 4

    def half(v):
        return 2.0 ** (max(math.frexp(v)[1], -13) - 12)  # half a step of a half

    def sigmoid(v):
        return 1 / (1 + math.exp(-v))

    for kind, degree in (("glb", 3), ("ksplat", 2), ("ksplat0", 2), ("ksplat2", 2)):
        m, _, got = ply(kind + ".ply")
        assert m == n, kind
        K, k = 15, (degree + 1) ** 2 - 1
        rest = [c * K + i for c in range(3) for i in range(k)]
        values = [w["f_rest_%d" % i] for w in want for i in rest]
        exact, halves = kind in ("glb", "ksplat0"), kind in ("ksplat", "ksplat2")
        sh_step = (max(values) - min(values)) / 255
        # no step is larger than 16 bits for the whole scene, and most are far smaller: buckets are small, and
        # sections of like buckets
        size = max(max(w[a] for w in want) - min(w[a] for w in want) for a in "xyz")
        off = sorted(max(abs(w[a] - g[a]) for a in "xyz") for w, g in zip(want, got))
        assert off[-1] <= (0 if exact else size / 65536 / 2), (kind, "position", off[-1], size)
        assert off[n // 2] <= size / 65536 / 8, (kind, "positions", off[n // 2], size)
        for w, g in zip(want, got):
            for i in range(3):
                a, b = math.exp(w["scale_%d" % i]), math.exp(g["scale_%d" % i])
                assert abs(a - b) <= (half(a) if halves else 0) + 4e-7 * a, (kind, "scale", w, g)
                a, b = w["f_dc_%d" % i], g["f_dc_%d" % i]
                if kind == "glb":
                    assert a == b
                elif abs(a) < 1.77:
                    assert abs(a - b) <= 0.5001 / 255 / 0.28209479177387814, (kind, "colour", a, b)
            a, b = sigmoid(w["opacity"]), sigmoid(g["opacity"])
            assert abs(a - b) <= (1e-7 if kind == "glb" else 0.75 / 255), (kind, "opacity", a, b)
            q = [w["rot_%d" % i] for i in range(4)]
            length = math.sqrt(sum(v * v for v in q))
            for i in range(4):
                a, b = q[i] / length, g["rot_%d" % i]
                assert abs(a - b) <= (half(a) if halves else 1e-7) * 1.001, (kind, "rotation", a, b)
            for c in range(3):
                for i in range(k):
                    a, b = w["f_rest_%d" % (c * K + i)], g["f_rest_%d" % (c * k + i)]
                    if exact:
                        assert a == b
                    elif kind == "ksplat":
                        assert abs(a - b) <= half(a), (kind, "sh", a, b)
                    else:
                        assert abs(a - b) <= 0.5001 * sh_step, (kind, "sh", a, b)


def far():
    names = SPLAT_COLUMNS
    with open("far.ply", "wb") as f:
        f.write(b"ply\nformat binary_little_endian 1.0\nelement vertex 700\n")
        f.write(b"".join(b"property float %s\n" % c.encode() for c in names) + b"end_header\n")
        for i in range(700):  # 256 rows a bucket: the far ones are in the first
            f.write(
                struct.pack(
                    "<14f", 9e6 if i < 5 else i / 700, 0, 0, 0, 0, 0, 1, 9 if i == 100 else -4, -6, -6, 1, 0, 0, 0
                )
            )


def flag():
    data = open("one.glb", "rb").read()
    n = struct.unpack_from("<I", data, 12)[0]
    text = data[20 : 20 + n].rstrip().replace(b'"mode":0', b'"mode":0,"extras":{"antialiased":true}')
    text += b" " * (-len(text) % 4)
    rest = data[20 + n :]
    open("flag.glb", "wb").write(
        data[:8] + struct.pack("<II", 20 + len(text) + len(rest), len(text)) + b"JSON" + text + rest
    )


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
