"""The python of tests/e2e/rounds.t: `py FUNCTION [argument...]` of tests/cases.sh calls one of these."""
import random, sqlite3, struct, sys, zlib


def splats():
    r, row = random.Random(1), struct.Struct("<6f8B").pack
    with open("s/scene.splat", "wb") as f:
        for i in range(393500):
            b = r.getrandbits(32)
            f.write(
                row(
                    r.random(),
                    r.random(),
                    r.random(),
                    0.01,
                    0.01,
                    0.01,
                    b & 255,
                    b >> 8 & 255,
                    77,
                    200 if i % 5 else 0,
                    255,
                    b >> 16 & 255,
                    b >> 24,
                    128,
                )
            )


def flip(path):
    packed = sqlite3.connect(path).execute("SELECT packed FROM blob ORDER BY length(packed) DESC").fetchone()[0]
    data = bytearray(open(path, "rb").read())
    data[data.find(packed[200:232])] ^= 4
    open(path, "wb").write(data)


def photo():
    chunk = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    open("i/images/a.png", "wb").write(
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", struct.pack(">IIBBBBB", 64, 64, 8, 0, 0, 0, 0))
        + chunk(b"IDAT", zlib.compress(bytes(65 * 64)))
        + chunk(b"IEND", b"")
    )


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
