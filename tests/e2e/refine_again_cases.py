"""The python of tests/e2e/refine_again.t: `py FUNCTION [argument...]` of tests/cases.sh calls one of these."""
import json, sqlite3, sys


def units(old_path, new_path, json_path):
    def of(path):
        db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        chunks = {
            r[0]: r[1:]
            for r in db.execute(
                "SELECT c.name, reach_min_x, reach_min_y, reach_min_z, reach_max_x, reach_max_y, reach_max_z, "
                "group_concat(hex(s.hash))"
                " FROM stage_output o JOIN chunk c ON c.layer = o.layer JOIN plane p ON p.chunk = c.id AND p.name "
                "NOT LIKE 'spacing%'"
                " JOIN plane_segment s ON s.plane = p.id WHERE o.role = 'baked' GROUP BY c.id"
            )
        }
        return chunks, {k: n for k, n in db.execute("SELECT key, name FROM unit WHERE stage = 'lod'")}

    (old, before), (new, after) = of(old_path), of(new_path)
    assert old.keys() == new.keys() and len(old) > 20, len(old)
    changed = {n for n in old if old[n][-1] != new[n][-1]}
    touch = lambda a, b: all(a[i] <= b[3 + i] and b[i] <= a[3 + i] for i in range(3))
    drew = {n for n in old if any(touch(x[n], x[c]) for x in (old, new) for c in changed)}
    made = {n for k, n in after.items() if k not in before}
    refined, merged, cells = (
        {n.split(" ", 1)[1] for n in made if n.startswith(w)} for w in ("refine ", "chunk ", "cell ")
    )
    print(
        len(old),
        "chunks,",
        sorted(changed),
        "changed,",
        len(drew),
        "touch it,",
        len(refined),
        "refined again,",
        len(cells),
        "cells merged again",
    )
    assert len(changed) == 1 and merged == changed, (merged, changed)
    assert changed <= refined <= drew and len(refined) < len(old), (refined, drew)
    above = {"/".join(n.split("/")[:k]) or "/" for n in changed for k in range(1, n.count("/") + 1)}
    assert cells <= above, (cells, above)
    assert json.load(open(json_path))["units"]["done"] == len(
        [n for n in made if n.split(" ")[0] in ("refine", "chunk", "cell")]
    )


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
