"""The python of tests/e2e/convert.t: `py FUNCTION [argument...]` of tests/cases.sh calls one of these."""
import struct
import sys


def wide_ply(path):
    """Ten Gaussians with 256 columns of doubles, whose meaning is not known."""
    extras = 256
    names = "x y z f_dc_0 f_dc_1 f_dc_2 opacity scale_0 scale_1 scale_2 rot_0 rot_1 rot_2 rot_3".split()
    head = "".join(f"property float {name}\n" for name in names)
    head += "".join(f"property double more_{i}\n" for i in range(extras))
    with open(path, "wb") as f:
        f.write(f"ply\nformat binary_little_endian 1.0\nelement vertex 10\n{head}end_header\n".encode())
        for i in range(10):
            f.write(struct.pack(f"<14f{extras}d", i, 0, 0, 0, 0, 0, 1, -3, -3, -3, 1, 0, 0, 0, *range(extras)))


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
