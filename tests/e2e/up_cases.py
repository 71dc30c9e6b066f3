"""The python of tests/e2e/up.t: `py FUNCTION [argument...]` of tests/cases.sh calls one of these."""
import sqlite3, sys


def ups(path):
    db = sqlite3.connect("file:" + path + "?mode=ro", uri=True)
    named = {(a, s): ("-" if s < 0 else "") + "xyz"[a] for a in range(3) for s in (1, -1)}
    seen = set()
    for row in db.execute("SELECT r10, r11, r12 FROM camera"):
        up = [-v for v in row]  # y points down in a picture
        axis = max(range(3), key=lambda a: abs(up[a]))
        assert abs(up[axis]) > 0.9, up
        seen.add(named[axis, 1 if up[axis] > 0 else -1])
    print(*sorted(seen), db.execute("SELECT up_axis FROM scene").fetchone()[0])


def write_neck(path, stray):
    """A body of 980 points, a neck of 20 that is as long as the body is wide, and perhaps a point far away."""
    rows = [(k % 10 / 5 - 0.9, k // 10 % 10 / 5 - 0.9, k // 100 / 5 - 0.9) for k in range(980)]
    rows += [(0, -0.9 - k / 12, 0) for k in range(20)]
    rows += [(0, float(stray), 0)] * (stray != "0")
    head = "ply\nformat ascii 1.0\nelement vertex %d\nproperty float x\nproperty float y\nproperty float z\n" % len(rows)
    head += "".join("property uchar %s\n" % c for c in ("red", "green", "blue")) + "end_header\n"
    with open(path, "w") as f:
        f.write(head + "".join("%g %g %g 9 9 9\n" % r for r in rows))


def neck_is_seen(path):
    """All of the neck is in every picture."""
    q = "SELECT r00, r01, r02, r10, r11, r12, r20, r21, r22, t0, t1, t2, fx, fy, cx, cy, width, height FROM camera"
    for c in sqlite3.connect("file:" + path + "?mode=ro", uri=True).execute(q):
        for p in ((0, -0.9 - 19 / 12, 0), (0, 0.9, 0)):
            x, y, z = (sum(c[3 * i + a] * p[a] for a in range(3)) + c[9 + i] for i in range(3))
            u, v = c[12] * x / z + c[14], c[13] * y / z + c[15]
            assert z > 0 and 0 < u < c[16] and 0 < v < c[17], (p, u, v)
        assert c[9] ** 2 + c[10] ** 2 + c[11] ** 2 < 100, "the orbit goes around what strays"


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
