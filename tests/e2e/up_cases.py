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


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
