"""The python of tests/e2e/floaters.t: `py FUNCTION [argument...]` of tests/cases.sh calls one of these."""
import bisect, sys
import floaters


def near(wanted_path, got_path, step_text):
    # near WANTED.ply GOT[.ply|.json|.rad] STEP: each position that was written has one of its own within a step;
    # prints how many have none.
    # A format whose steps grow with the distance: STEP is relative to 1 + the coordinate.
    want = sorted(floaters.positions(wanted_path))
    got, step = got_path, float(step_text)
    rows = (
        floaters.tiles(got)
        if got.endswith(".json")
        else [(p, 0) for p in (floaters.rad(got)[0] if got.endswith(".rad") else floaters.positions(got))]
    )
    assert len(rows) == len(want), (len(rows), len(want))
    xs, used, lost = [p[0] for p in want], set(), 0
    for p, s in rows:
        limit = [max(s, step * (1 + abs(v))) for v in p]
        at = bisect.bisect_left(xs, p[0] - limit[0])
        while at < len(xs) and xs[at] <= p[0] + limit[0]:
            if at not in used and all(abs(a - b) <= l for a, b, l in zip(p, want[at], limit)):
                break
            at += 1
        else:
            at = len(xs)
        if at == len(xs):
            lost += 1
        else:
            used.add(at)
    print(lost)


def places():
    got, want = [p for p, _ in floaters.tiles("a.tiles/tileset.json")], floaters.positions("s/scene.ply")
    far = lambda rows: sorted(p for p in rows if max(map(abs, p)) > 1e6)
    assert len(got) == len(want) and len(set(got)) == len(want), (len(got), len(set(got)), len(want))
    assert len(far(got)) == 60 and all(max(abs(a - b) for a, b in zip(p, q)) <= 64 for p, q in zip(far(got), far(want)))


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
