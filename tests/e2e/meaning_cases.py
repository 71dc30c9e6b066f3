"""The python of tests/e2e/meaning.t: `py FUNCTION [argument...]` of tests/cases.sh calls one of these."""
import random, sys


def points():
    random.seed(3)
    open("p/points.ply", "w").write(
        "ply\nformat ascii 1.0\nelement vertex 50\nproperty float x\nproperty float y\nproperty float z\nend_header\n"
        + "".join("%f %f %f\n" % tuple(random.random() for _ in range(3)) for _ in range(50))
    )


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
