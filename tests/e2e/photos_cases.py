"""The python of tests/e2e/photos.t: `py FUNCTION [argument...]` of tests/cases.sh calls one of these."""
import json, sys


def beside():
    whole, damaged = ({v["name"]: v for v in json.load(open(f))["views"]} for f in ("whole.json", "damaged.json"))
    assert all(whole[n]["pixels"] == damaged[n]["pixels"] for n in whole)
    assert whole["cam7"]["psnr"] == damaged["cam7"]["psnr"] and whole["cam7"]["ssim"] == damaged["cam7"]["ssim"]


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
