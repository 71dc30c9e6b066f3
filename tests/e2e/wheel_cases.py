"""The python of tests/e2e/wheel.t: FUNCTION [argument...] calls one of these."""
import sys


def drawn(manifest, picture):
    import numpy
    import splatkiln

    mine = splatkiln.open(manifest).draw("cam1")
    if mine[..., 3].mean() < 0.1 or mine.tobytes() != numpy.load(picture).tobytes():
        sys.exit("the pictures differ")


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
