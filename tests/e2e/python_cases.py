"""The python of tests/e2e/python.t: `py FUNCTION [argument...]` of tests/cases.sh calls one of these."""
import sys


def no_library(path):
    sys.modules["xxhash"] = None
    import splatkiln
    from splatkiln.__main__ import main

    try:
        main(path)
    except splatkiln.LibraryError as e:
        sys.exit("splatkiln: %s" % e)


def library_elsewhere():
    import splatkiln.native

    splatkiln.native.__file__ = "/native.py"
    splatkiln.library()


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
