"""The python of tests/e2e/photo_places.t: `py FUNCTION [argument...]` of tests/cases.sh calls one of these."""
import json, struct, sys, zlib
import picture


def chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def png(path, w, h, colour, rows, orientation=0):
    exif = b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01" + struct.pack(">HH", orientation, 0) + b"\0\0\0\0"
    open(path, "wb").write(
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", struct.pack(">IIBBBBB", w, h, 8, colour, 0, 0, 0))
        + (chunk(b"eXIf", exif) if orientation else b"")
        + chunk(b"IDAT", zlib.compress(b"".join(b"\0" + r for r in rows)))
        + chunk(b"IEND", b"")
    )


def put():
    w, h, pixels = picture.read_png("drawn/cam2.png")
    rgb = [bytes(round(255 * v) for v in p[:3]) for p in pixels]
    # orientation 6: shown after a turn clockwise, so stored turned the other way
    png("turned.png", h, w, 2, [b"".join(rgb[r * w + w - 1 - y] for r in range(h)) for y in range(w)], 6)
    png("tilted.png", w, h, 2, [b"".join(rgb[y * w : y * w + w]) for y in range(h)], 6)
    png("grey.png", w, h, 0, [bytes(rgb[y * w + x][1] for x in range(w)) for y in range(h)])


def odd_sizes():
    png("n/images_2/a.png", 48, 32, 2, [bytes(3 * 48)] * 32)
    png("n/images_2/b.png", 47, 33, 2, [bytes(3 * 47)] * 33)
    eye = [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 4], [0, 0, 0, 1]]
    names = ["a", "b"] + ["gone%02d" % i for i in range(7)]
    json.dump(
        {
            "fl_x": 95,
            "fl_y": 65,
            "cx": 47.5,
            "cy": 32.5,
            "w": 95,
            "h": 65,
            "frames": [{"file_path": "images/%s.png" % n, "transform_matrix": eye} for n in names],
        },
        open("n/transforms.json", "w"),
    )


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
