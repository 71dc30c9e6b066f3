#!/bin/bash
# kiln-lod --refine of a scene in which one Gaussian has moved: only its chunk and the chunks that drew it are refined again, only its chunk
# and the cells above are merged again. Killed ten times, it goes on with what was stored and has the digest of a run in one go.
. tests/e2e/lib.sh
cd "$KILN_TMP" || exit 1
number() { python3 -c 'import json, sys; d = json.load(open(sys.argv[1])); print(eval(sys.argv[2], {}, {"d": d}))' "$1" "$2"; }
chunked() { kiln import "$1" "$2" >/dev/null && kiln knn "$2" >/dev/null && kiln chunk "$2" --layer source --max 96 >/dev/null || fail "bake of $1"; }
lod() { must 0 kiln lod "$1" --levels 1 --coarsest 96 --visibility off --refine 2 --devices cpu --json "${@:2}"; }

kiln generate demo s --gaussians 1500 --cameras 3 --size 48x36 >/dev/null || fail "generate"
chunked s base.db
cp base.db one.db
lod one.db --threads 1

# ---- one Gaussian
cp -r s moved
edit_ply moved/scene.ply x 700 'v + 0.0005'
cp one.db moved.db
chunked moved moved.db
lod moved.db
cp out moved.json
python3 - one.db moved.db moved.json <<'E2' || fail "other units were computed than those that the Gaussian is in"
import json, sqlite3, sys
def of(path):
    db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    chunks = {r[0]: r[1:] for r in db.execute(
        "SELECT c.name, reach_min_x, reach_min_y, reach_min_z, reach_max_x, reach_max_y, reach_max_z, group_concat(hex(s.hash))"
        " FROM stage_output o JOIN chunk c ON c.layer = o.layer JOIN plane p ON p.chunk = c.id AND p.name NOT LIKE 'spacing%'"
        " JOIN plane_segment s ON s.plane = p.id WHERE o.role = 'baked' GROUP BY c.id")}
    return chunks, {k: n for k, n in db.execute("SELECT key, name FROM unit WHERE stage = 'lod'")}
(old, before), (new, after) = of(sys.argv[1]), of(sys.argv[2])
assert old.keys() == new.keys() and len(old) > 20, len(old)
changed = {n for n in old if old[n][-1] != new[n][-1]}
touch = lambda a, b: all(a[i] <= b[3 + i] and b[i] <= a[3 + i] for i in range(3))
drew = {n for n in old if any(touch(x[n], x[c]) for x in (old, new) for c in changed)}
made = {n for k, n in after.items() if k not in before}
refined, merged, cells = ({n.split(" ", 1)[1] for n in made if n.startswith(w)} for w in ("refine ", "chunk ", "cell "))
print(len(old), "chunks,", sorted(changed), "changed,", len(drew), "touch it,", len(refined), "refined again,", len(cells), "cells merged again")
assert len(changed) == 1 and merged == changed, (merged, changed)
assert changed <= refined <= drew and len(refined) < len(old), (refined, drew)
above = {"/".join(n.split("/")[:k]) or "/" for n in changed for k in range(1, n.count("/") + 1)}
assert cells <= above, (cells, above)
assert json.load(open(sys.argv[3]))["units"]["done"] == len([n for n in made if n.split(" ")[0] in ("refine", "chunk", "cell")])
E2
cp base.db anew.db
chunked moved anew.db
lod anew.db
same anew.db moved.db

# ---- kills
# In ten units of both lists, in the order in which one worker computes them, so that each run gets further than the one before. A run is
# killed when it hangs in its unit and has stored all units before it: never earlier or later, however fast the machine is.
cp base.db killed.db
sqlite3 one.db "SELECT name, (SELECT count(*) FROM unit b WHERE b.stage = 'lod' AND b.id < u.id) FROM unit u WHERE stage = 'lod' AND
    (name LIKE 'chunk %' OR name LIKE 'refine %') ORDER BY id" | awk 'NR % 9 == 5' | head -10 >units
[ "$(wc -l <units)" = 10 ] && grep -q chunk units && grep -q refine units || fail "not ten units: $(cat units)"
while IFS='|' read -r unit before; do
    killed_when_stored killed.db lod "$before" env KILN_FAULT="unit=$unit:hang" "$KILN_BIN/kiln-lod" killed.db --quiet --levels 1 --coarsest 96 --visibility off --refine 2 --devices cpu --threads 1
    code=$?
    [ $code = 137 ] || fail "the run that hangs in '$unit' ended with $code"
    [ "$(stored killed.db lod)" = "$before" ] || fail "$(stored killed.db lod) units are stored, not the $before before '$unit'"
    must 0 kiln verify killed.db
done <units
lod killed.db
[ "$(number out 'd["units"]["cached"]')" -gt 40 ] || fail "little was kept of the runs that were killed: $(number out 'd["units"]')"
same one.db killed.db
