"""The python of tests/e2e/sog.t: `py FUNCTION [argument...]` of tests/cases.sh calls one of these."""
import os, sys, zipfile


def pack():
    with zipfile.ZipFile("archive.sog", "w", zipfile.ZIP_DEFLATED) as z:
        for name in os.listdir("folder"):
            z.write("folder/" + name, name)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
