"""The python of tests/e2e/option_values.t: `py FUNCTION [argument...]` of tests/cases.sh calls one of these."""
import json, sys


def later_camera():
    cameras = json.load(open("s/cameras.json"))
    cameras.append(dict(cameras[0], id=99, **{k: "later" for k in ("img_name", "name") if k in cameras[0]}))
    json.dump(cameras, open("s/cameras.json", "w"))


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
