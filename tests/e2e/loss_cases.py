"""The python of tests/e2e/loss.t: `py FUNCTION [argument...]` of tests/cases.sh calls one of these."""
import json, struct, sys


def far():
    by = (5000000.5, -4000000, 0)
    cameras = json.load(open("s/cameras.json"))
    for c in cameras:
        r = c["R"]
        c["t"] = [t - sum(r[3 * i + k] * by[k] for k in range(3)) for i, t in enumerate(c["t"])]
    json.dump(cameras, open("far.json", "w"))
    b = open("s/scene.ply", "rb").read()
    at = b.index(b"end_header\n") + 11
    head = b[:at]
    for name in (b"x", b"y", b"z"):
        head = head.replace(b"property float %s\n" % name, b"property double %s\n" % name)
    n = head.count(b"property")
    with open("far.ply", "wb") as f:
        f.write(head)
        for row in struct.iter_unpack("<%df" % n, b[at:]):
            f.write(struct.pack("<3d%df" % (n - 3), *(v + o for v, o in zip(row, by)), *row[3:]))


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
