"""The python of tests/e2e/meaning.t: `py FUNCTION [argument...]` of tests/cases.sh calls one of these."""
import random, struct, sys

from picture import read_png


def points():
    random.seed(3)
    open("p/points.ply", "w").write(
        "ply\nformat ascii 1.0\nelement vertex 50\nproperty float x\nproperty float y\nproperty float z\nend_header\n"
        + "".join("%f %f %f\n" % tuple(random.random() for _ in range(3)) for _ in range(50))
    )


def ground(outside, inside):
    """A picture from inside of the sky shows the ground, which is green; one from outside shows none of it."""
    def green(path):
        pixels = read_png(path)[2]
        return sum(p[1] > p[2] for p in pixels) / len(pixels)
    if not (green(outside) < 0.05 and green(inside) > 0.3):
        sys.exit(f"{outside} {green(outside):.3f}, {inside} {green(inside):.3f}")


def balls(path):
    """White balls of radius 1 far from each other; the first is around 0."""
    r = random.Random(2)
    names = "x y z f_dc_0 f_dc_1 f_dc_2 opacity scale_0 scale_1 scale_2 rot_0 rot_1 rot_2 rot_3".split()
    rows = []
    for centre in ((0, 0, 0), (12, 0, 0), (-12, 3, 5), (0, 0, -14)):
        for _ in range(500):
            d = [r.gauss(0, 1) for _ in range(3)]
            k = r.random()**(1 / 3) / sum(v * v for v in d)**0.5
            rows.append([c + k * v for c, v in zip(centre, d)] + [1.7] * 3 + [5] + [-2.3] * 3 + [1, 0, 0, 0])
    head = "ply\nformat binary_little_endian 1.0\nelement vertex %d\n" % len(rows)
    head += "".join("property float %s\n" % n for n in names) + "end_header\n"
    with open(path, "wb") as f:
        f.write(head.encode() + b"".join(struct.pack("<14f", *row) for row in rows))


def larger(near, far):
    """What is drawn fills a good part of the first picture, within its borders, and little of the second."""
    def bright(path):
        width, height, pixels = read_png(path)
        lit = [i for i, p in enumerate(pixels) if p[0] > 0.4]
        edge = [i for i in lit if i < width or i >= len(pixels) - width or i % width in (0, width - 1)]
        return len(lit) / len(pixels), len(edge)
    if not (bright(near)[0] > 0.1 and bright(near)[1] == 0 and bright(far)[0] < 0.05):
        sys.exit(f"{near} {bright(near)}, {far} {bright(far)}")


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
