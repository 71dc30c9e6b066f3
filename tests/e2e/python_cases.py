"""The python of tests/e2e/python.t: `py FUNCTION [argument...]` of tests/cases.sh calls one of these."""
import sys


def no_library(path):
    sys.modules["xxhash"] = None
    sys.path.insert(0, "examples/python")
    import splatkiln

    try:
        splatkiln.main(path)
    except splatkiln.BakeError as e:
        sys.exit("splatkiln: %s" % e)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
