"""The python of tests/e2e/prune_capture.t: `py FUNCTION [argument...]` of tests/cases.sh calls one of these."""
import json, math, sys


def lost():
    off, on = ({v["name"]: v["psnr"] for v in json.load(open(f))["views"]} for f in ("off.json", "default.json"))
    drops = [off[n] - on[n] for n in off]
    print(len(drops), "photos lose %.3f dB in the mean and %.3f at most" % (sum(drops) / len(drops), max(drops)))
    assert len(drops) == 6 and sum(drops) / len(drops) <= 0.02 and max(drops) <= 0.05


def outward():
    cameras = json.load(open("looking/cameras.json"))
    # in front of the third group, which is 140 units away, looking out of the scene
    a = 4.2
    f, right = [math.sin(a), 0, math.cos(a)], [math.cos(a), 0, -math.sin(a)]
    centre = [136 * math.sin(a), 14, 136 * math.cos(a)]
    R = [right, [0, 1, 0], f]
    t = [-sum(R[i][k] * centre[k] for k in range(3)) for i in range(3)]
    cameras.append(dict(cameras[0], name="outward", R=sum(R, []), t=t))
    json.dump(cameras, open("looking/cameras.json", "w"))


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
