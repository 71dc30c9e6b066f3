"""The python of tests/e2e/ram_cameras.t: `py FUNCTION [argument...]` of tests/cases.sh calls one of these."""
import json, sys


def all_views():
    d = json.load(open("all.json"))
    assert (
        len(d["views"]) == 3000
        and len({v["name"] for v in d["views"]}) == 3000
        and all(len(v["pixels"]) == 32 for v in d["views"])
    )
    assert list(d).index("views") < list(d).index("profile") and "views_left_out" not in d


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
