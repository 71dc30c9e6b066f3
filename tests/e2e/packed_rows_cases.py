"""The python of tests/e2e/packed_rows.t: `py FUNCTION [argument...]` of tests/cases.sh calls one of these."""
import array, sys


def same(*paths):
    a, b = (open(f, "rb").read() for f in paths)
    if a[:3] == b"ply":  # bounds of colours went through a coefficient: the last place
        at = a.index(b"end_header\n") + 11
        n = 72 * ((1500 + 255) // 256)
        for i, (x, y) in enumerate(zip(array.array("f", a[at : at + n]), array.array("f", b[at : at + n]))):
            assert x == y if i % 18 < 12 else abs(x - y) <= 1.2e-7 * max(1, abs(x)), (i, x, y)
        a, b = a[:at] + a[at + n :], b[:at] + b[at + n :]
    assert a == b


def hard():
    print("ply\nformat ascii 1.0\nelement vertex 2")
    names = ["x", "y", "z", "f_dc_0", "f_dc_1", "f_dc_2"] + ["f_rest_%d" % i for i in range(72)]
    for name in names + ["opacity", "scale_0", "scale_1", "scale_2", "rot_0", "rot_1", "rot_2", "rot_3"]:
        print("property float", name)
    print("end_header")
    print(1, 2, 3, 9, 0, -9, "5 " * 72, 0, -25, 0, 88, "1 0 0 0")
    print(1, 2, 3, 0, 0, 0, "0 " * 72, 0, 0, 0, 0, "1 0 0 0")


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
