"""The python of tests/e2e/alpha.t: `py FUNCTION [argument...]` of tests/cases.sh calls one of these."""
import sys
from picture import *


def composed():
    colours = {"black": (0, 0, 0), "white": (1, 1, 1), "40,200,90": (40 / 255, 200 / 255, 90 / 255)}
    truth = {name: read_npy("over-%s.npy" % name)[2] for name in colours}
    alphas = [p[3] for p in truth["black"]]
    assert 0 in alphas and 0 < sum(0 < a < 0.9 for a in alphas) < len(alphas), "the scene has no edges to look at"
    worst = {8: math.inf, 16: math.inf}
    for format, bits in (("png", 8), ("png16", 16)):
        for drawn in colours:
            pixels = read_png("%s-%s.png" % (format, drawn))[2]
            assert all(p[:3] == [0, 0, 0] for p in pixels if p[3] == 0), "a colour where nothing is"
            for over in colours:
                worst[bits] = min(worst[bits], db(compose(pixels, colours[over]), truth[over]))
    print("worst of all compositions: %.2f dB at 8 bits, %.2f dB at 16" % (worst[8], worst[16]))
    assert worst[8] >= 48 and worst[16] >= 85, worst
    # .npy: what the help says of it
    for drawn, back in colours.items():
        back_of = [[p[c] - (1 - p[3]) * back[c] for c in range(3)] for p in truth[drawn]]
        alone = [[p[c] for c in range(3)] for p in truth["black"]]
        assert db(back_of, alone) > 120


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
