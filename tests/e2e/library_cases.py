"""The python of tests/e2e/library.t: `py FUNCTION [argument...]` of tests/cases.sh calls one of these."""
import array, struct, sys


def same(npy_path, ppm_path):
    npy, ppm = open(npy_path, "rb").read(), open(ppm_path, "rb").read()
    values = array.array("f", npy[10 + struct.unpack("<H", npy[8:10])[0] :])
    magic, size, depth, pixels = ppm.split(b"\n", 3)
    assert (magic, size, depth) == (b"P6", b"200 120", b"255"), (magic, size, depth)
    f32 = lambda v: struct.unpack("f", struct.pack("f", v))[0]
    eight = lambda v: 255 if v >= 1 else int(f32(f32(v * 255) + 0.5)) if v > 0 else 0
    want = bytes(eight(v) for i, v in enumerate(values) if i % 4 != 3)
    assert len(want) == len(pixels) and max(want) > 100
    assert want == pixels, "%d values differ" % sum(a != b for a, b in zip(want, pixels))


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
