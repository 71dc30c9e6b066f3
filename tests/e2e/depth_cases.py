"""The python of tests/e2e/depth.t: `py FUNCTION [argument...]` of tests/cases.sh calls one of these."""
import struct, sys, zlib


def png(path):
    data, body, text, at = open(path, "rb").read(), b"", "", 8
    while at < len(data):
        n, kind = struct.unpack(">I4s", data[at : at + 8])
        part = data[at + 8 : at + 8 + n]
        if kind == b"IHDR":
            w, h, bits, colour = struct.unpack(">IIBB", part[:10])
        if kind == b"IDAT":
            body += part
        if kind == b"tEXt" and part.startswith(b"Unit"):
            text = part.decode()
        at += 12 + n
    body, step = zlib.decompress(body), bits // 8 * {0: 1, 2: 3}[colour]
    rows, above, size = b"", bytes(step * w), step * w
    for y in range(h):
        f, row = body[y * (size + 1)], bytearray(body[y * (size + 1) + 1 : (y + 1) * (size + 1)])
        for i in range(size):
            a, b, c = (row[i - step] if i >= step else 0), above[i], (above[i - step] if i >= step else 0)
            p = a + b - c
            best = min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]
            row[i] = (row[i] + (0, a, b, (a + b) // 2, best)[f]) & 255
        rows, above = rows + row, bytes(row)
    return w, h, bits, colour, text, rows


def npy(path):
    raw = open(path, "rb").read()
    return struct.unpack("<%df" % (96 * 64), raw[10 + struct.unpack("<H", raw[8:10])[0] :])


def numbers(printed):
    w, h, bits, colour, text, rows = png("b.depth.png")
    assert (w, h, bits, colour) == (96, 64, 16, 0)
    assert text == "Unit\0expected depth in scene units = value * " + printed, text
    step, values, want = float(printed), struct.unpack(">6144H", rows), npy("a.depth.npy")
    assert max(values) == 65535 and max(want) > 0
    assert all(abs(v * step - d) <= 0.51 * step for v, d in zip(values, want))


def colours():
    w, h, bits, colour, text, rows = png("c.depth.png")
    assert (w, h, bits, colour) == (96, 64, 8, 2) and text.startswith("Unit\0turbo"), text
    depth = npy("a.depth.npy")
    seen = sorted(range(6144), key=lambda i: depth[i] or 1e9)
    pixel = lambda i: rows[3 * i : 3 * i + 3]
    near, far = pixel(seen[0]), pixel(max(range(6144), key=lambda i: depth[i]))
    assert near[0] > 100 > near[2] and far[2] > 100 > far[0], (near, far)
    empty = [i for i in range(6144) if depth[i] == 0]
    assert all(pixel(i) == b"\0\0\0" for i in empty)


def cut_out():
    raw = open("d.depth.npy", "rb").read()
    part, whole = struct.unpack("<512f", raw[-2048:]), npy("a.depth.npy")
    assert b"(16, 32" in raw[:128] and all(
        part[y * 32 + x] == whole[(y + 24) * 96 + 8 + x] for y in range(16) for x in range(32)
    )


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
