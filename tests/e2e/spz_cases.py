"""The python of tests/e2e/spz.t: `py FUNCTION [argument...]` of tests/cases.sh calls one of these."""
import gzip, random, struct, sys


def files():
    n, degree = 20000, 3
    r = random.Random(5)
    planes = [r.randbytes(n * k) for k in (9, 1, 3, 3, 4, 45)]

    def header(version, flags=0, last=0, count=n):
        return b"NGSP" + struct.pack("<II4B", version, count, degree, 12, flags, last)

    def record(system):
        return struct.pack("<III", 0xADBE0003, 4, system)

    def put(name, data):
        open(name, "wb").write(data)

    def frame(data):  # raw blocks of zstd, behind a window of a MiB
        out = struct.pack("<IBB", 0xFD2FB528, 0, 10 << 3)
        for at in range(0, len(data), 131072):
            b = data[at : at + 131072]
            out += ((at + 131072 >= len(data)) | len(b) << 3).to_bytes(3, "little") + b
        return out

    def streams(frames, sizes, flags=0, ext=b""):
        head = header(4, flags, 6) + struct.pack("<I12x", 32 + len(ext)) + ext
        return head + b"".join(struct.pack("<QQ", len(f), s) for f, s in zip(frames, sizes)) + b"".join(frames)

    plain = b"".join(planes)
    frames, sizes = [frame(p) for p in planes], [len(p) for p in planes]
    put("v3.spz", gzip.compress(header(3) + plain, 1))
    put("v4in3.spz", gzip.compress(header(4) + plain, 1))
    put("v4.spz", streams(frames, sizes))
    put("v4.spz.gz", gzip.compress(streams(frames, sizes), 1))
    put("rub.spz", gzip.compress(header(3, 2) + plain + record(4), 1))
    put("rdf.spz", streams(frames, sizes, 2, record(6)))
    put("plain.spz", header(3) + plain)
    put("cut.spz", gzip.compress(header(3) + plain, 1)[:-9])
    put("more.spz", gzip.compress(header(3, count=10) + bytes(10 * 65 + (32 << 20)), 9))
    zeros = (
        struct.pack("<IBB", 0xFD2FB528, 0, 10 << 3)
        + (131072 << 3 | 2).to_bytes(3, "little").__add__(b"\0") * 2047
        + (131072 << 3 | 3).to_bytes(3, "little")
        + b"\0"
    )
    put("bomb.spz", streams([frames[0], zeros] + frames[2:], sizes))
    head = (
        b"ply\nformat ascii 1.0\ncomment "
        + b"x" * 1000
        + b"\nelement vertex 1\nproperty float x\nproperty float y\nproperty float z\nend_header\n0 0 0"
    )
    put("blank.ply.gz", gzip.compress(head + b"\n" * 8000000, 9))


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
