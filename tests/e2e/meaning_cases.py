"""The python of tests/e2e/meaning.t: `py FUNCTION [argument...]` of tests/cases.sh calls one of these."""
import random, sys

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


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
