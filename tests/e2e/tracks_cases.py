"""The python of tests/e2e/tracks.t: `py FUNCTION [argument...]` of tests/cases.sh calls one of these."""
import glob, os, struct, sys, zlib
import picture


def masks(folder):
    for folder, _, names in os.walk(folder + "/images"):
        for name in names:
            w, h, _ = picture.read_png(os.path.join(folder, name))
            to = os.path.join(folder.replace("/images", "/masks", 1), name + ".png")
            os.makedirs(os.path.dirname(to), exist_ok=True)
            picture.write_png(to, w, h, [(0, 0, 0)] * (w * h))


def large(folder):
    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    for path in glob.glob(folder + "/images/**/*.png", recursive=True):
        open(path, "wb").write(
            b"\x89PNG\r\n\x1a\n"
            + chunk(b"IHDR", struct.pack(">IIBBBBB", 3000, 3000, 8, 2, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(bytes(9001) * 3000))
            + chunk(b"IEND", b"")
        )


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
