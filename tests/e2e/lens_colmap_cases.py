"""The python of tests/e2e/lens_colmap.t: `py FUNCTION [argument...]` of tests/cases.sh calls one of these."""
import json, sys


def photos(worst, words):
    views = json.load(open("out"))["pictures"]
    least = min(float("inf") if v["psnr"] in ("inf", None) else v["psnr"] for v in views)
    print("%-76s %8s dB, cameras differ by %s" % (words, "%.2f" % least, worst))
    assert len(views) == 2 and least >= 45, views


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
