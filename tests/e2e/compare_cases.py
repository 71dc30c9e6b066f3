"""The python of tests/e2e/compare.t: `py FUNCTION [argument...]` of tests/cases.sh calls one of these."""
import json, sys


def document(out, whole):
    doc = json.load(open(out))
    assert [p["a"] for p in doc["pictures"]] == ["far.npy", "in/near.npy", "same.png"]
    assert [p["b"] for p in doc["pictures"]] == ["far.npy", "in/near.PNG", "same.png"]
    psnr = [p["psnr"] for p in doc["pictures"]]
    assert psnr[0] == float(whole) and 55 < psnr[1] < 65 and psnr[2] is None, psnr
    assert doc["mean_psnr"] == (psnr[0] + psnr[1]) / 2 and doc["equal"] == 1
    assert abs(doc["mean_ssim_same"] - sum(p["ssim_same"] for p in doc["pictures"]) / 3) < 1e-12
    assert (
        doc["only_in_a"] == ["mine.png"]
        and sorted(doc["only_in_b"]) == ["far.png", "far.x.png"]
        and doc["failed"] == []
    )


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
