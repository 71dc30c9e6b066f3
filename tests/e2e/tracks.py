"""tracks -- writes a small COLMAP model with photos whose colours are known, and checks those that its points got.

tracks.py write DIR bin|txt|many    the scene; many: binary, more points than a block holds, ids falling
tracks.py photos DIR [RED]          its photos alone; the red of photo a is multiplied by RED
tracks.py check PLY [RED]           the exported layer `initial`
tracks.py check-many PLY            of the scene with many points"""
import os
import struct
import sys
import zlib

WIDTH, HEIGHT = 40, 32  # of the model's camera; photo b has half of it
# id: colour in the file, keypoints (image, x, y). Images in the order of ids; c has no photo, `far` keypoints are outside.
POINTS = {
    3: ((0, 0, 0), [("a", 10.25, 8.5), ("b", 21.0, 9.0)]),
    11: ((0, 0, 0), [("c", 5.0, 5.0)]),
    5: ((0, 0, 0), [("a", -0.25, 5.0), ("a", 5.0, 32.5), ("b", 40.25, 3.0), ("a", 7.0, 7.0)]),
    2: ((10, 200, 30), [("a", 20.0, 20.0)]),
    900: ((0, 0, 0), [("b", 0.0, 32.0)]),
    77: ((0, 0, 0), [("a", -1.0, 5.0)]),
    8: ((0, 0, 1), [("a", 20.0, 20.0)]),
}
WANT = {11: (0, 0, 0), 77: (0, 0, 0), 2: (10, 200, 30), 8: (0, 0, 1)}
MANY = {70000 - k: ((0, 0, 0), [("a", 1 + k % 38, 1 + k // 38 % 30)]) for k in range(70000)}
LONELY = [(1.0, 1.0), (2.5, 2.5)]  # keypoints that observe no point


def shade(image, x, y, red):
    """8-bit colour of a photo's pixel: linear, so that bilinear sampling meets the formula at any place"""
    return (4 * x * red, 6 * y, 100) if image == "a" else (200 - 8 * x, 40, 10 * y)


def png(path, image, width, height, red):
    raw = b"".join(b"\0" + bytes(v for x in range(width) for v in shade(image, x, y, red)) for y in range(height))
    chunk = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    with open(path, "wb") as f:
        f.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
                + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b""))


def keypoints(image):
    seen = [(x, y, i) for i, (_, track) in POINTS.items() for name, x, y in track if name == image]
    return [(x, y, -1) for x, y in LONELY] + seen


def write_txt(model, images):
    with open(f"{model}/cameras.txt", "w") as f:
        f.write(f"1 PINHOLE {WIDTH} {HEIGHT} 40 40 20 16\n")
    with open(f"{model}/images.txt", "w") as f:
        for i, name in enumerate(images):
            f.write(f"{i + 1} 1 0 0 0 {i} 0 4 1 {name}.png\n" + " ".join(f"{x} {y} {p}" for x, y, p in keypoints(name)) + "\n")
    with open(f"{model}/points3D.txt", "w") as f:
        for k, (i, (rgb, _)) in enumerate(POINTS.items()):
            f.write(f"{i} {k} {k * k} 1 {rgb[0]} {rgb[1]} {rgb[2]} 0.5\n")


def write_bin(model, images):
    with open(f"{model}/cameras.bin", "wb") as f:
        f.write(struct.pack("<QIiQQ4d", 1, 1, 1, WIDTH, HEIGHT, 40, 40, 20, 16))
    with open(f"{model}/images.bin", "wb") as f:
        f.write(struct.pack("<Q", len(images)))
        for i, name in reversed(list(enumerate(images))):  # another order than in text
            points = keypoints(name)
            f.write(struct.pack("<I7dI", i + 1, 1, 0, 0, 0, i, 0, 4, 1) + f"{name}.png".encode() + struct.pack("<BQ", 0, len(points)))
            for x, y, p in points:
                f.write(struct.pack("<ddQ", x, y, p % 2**64))
    with open(f"{model}/points3D.bin", "wb") as f:
        f.write(struct.pack("<Q", len(POINTS)))
        for k, (i, (rgb, _)) in enumerate(POINTS.items()):
            f.write(struct.pack("<Q3d3BdQ", i, k, k * k, 1, *rgb, 0.5, 0))


def photos(scene, red=1):
    os.makedirs(f"{scene}/images", exist_ok=True)
    png(f"{scene}/images/a.png", "a", WIDTH, HEIGHT, red)
    png(f"{scene}/images/b.png", "b", WIDTH // 2, HEIGHT // 2, red)


def write(scene, encoding):
    photos(scene)
    os.makedirs(f"{scene}/sparse/0", exist_ok=True)
    (write_txt if encoding == "txt" else write_bin)(f"{scene}/sparse/0", ["a", "b", "c"])


def expected(i, red):
    """The mean over the photos, centres of pixels at 0.5, b of half the size; borders take the outermost centre."""
    if i in WANT:
        return WANT[i]
    samples = []
    for image, x, y in POINTS[i][1]:
        scale = 1 if image == "a" else 0.5
        if not (0 <= x <= WIDTH and 0 <= y <= HEIGHT):
            continue
        u = min(max(x * scale - 0.5, 0), WIDTH * scale - 1)
        v = min(max(y * scale - 0.5, 0), HEIGHT * scale - 1)
        samples.append(shade(image, u, v, red))
    return [sum(s[c] for s in samples) / len(samples) for c in range(3)]


def check(ply, red=1):
    with open(ply, "rb") as f:
        head, body = f.read().split(b"end_header\n", 1)
    names = [line.split()[2].decode() for line in head.splitlines() if line.startswith(b"property")]
    kinds = {b"float": "f", b"double": "d"}
    row = struct.Struct("<" + "".join(kinds[line.split()[1]] for line in head.splitlines() if line.startswith(b"property")))
    got = {}
    for values in row.iter_unpack(body):
        v = dict(zip(names, values))
        got[round(v["x"])] = [255 * (v[f"f_dc_{c}"] * 0.28209479177387814 + 0.5) for c in range(3)]
    bad = 0
    for k, i in enumerate(POINTS):
        want = expected(i, red)
        if max(abs(a - b) for a, b in zip(got[k], want)) > 1e-3:
            print(f"point {i}: {got[k]}, not {want}")
            bad = 1
    return bad


mode, path, *rest = sys.argv[1:]
if mode == "check-many" or rest == ["many"]:
    POINTS, WANT = MANY, {}
if mode == "write":
    write(path, *rest)
elif mode == "photos":
    photos(path, *map(int, rest))
else:
    sys.exit(check(path, *map(int, rest)))
