#!/bin/bash
# kiln-lod --visibility: how much cameras see of each Gaussian, as a layer of its own, the same on any threads; what decides about it,
# and what a change leads to.
. tests/e2e/lib.sh
TESTS=$PWD/tests/e2e
cd "$KILN_TMP" || exit 1
number() { python3 -c 'import json, sys; d = json.load(open(sys.argv[1])); print(eval(sys.argv[2], {}, {"d": d}))' "$1" "$2"; }
chunked() { kiln import "$1" "$2" >/dev/null && kiln knn "$2" >/dev/null && kiln prune "$2" >/dev/null && kiln chunk "$2" --max 256 >/dev/null || fail "bake of $1"; }
seen() { digest "$1" | grep '^layer visibility'; }
lod() { must 0 kiln lod "$@" --json --levels 2 --coarsest 256; cp out "${1%.db}.json"; must 0 kiln verify "$1"; }

scene s 2400 9 96x64
chunked s base.db
cp base.db one.db
lod one.db --threads 1
[ -n "$(seen one.db)" ] || fail "there are cameras and no visibility"
[ "$(number one.json 'd["visibility"]["views"] > 4')" = True ] || fail "one list would do for so few cameras"
cp base.db two.db
lod two.db --threads 2 --ram 256M
same one.db two.db
KILN_ISA=baseline
export KILN_ISA
lod two.db --force
unset KILN_ISA
same one.db two.db
"$KILN_BIN/kiln-lod" two.db 2>&1 --levels 2 --coarsest 256 | grep -q 'nothing to do' || fail "something to do"

# a plane beside those of `baked`; levels carry it
python3 - one.db <<'E0' || fail "the planes are not what they should be"
import sqlite3, sys
db = sqlite3.connect(f"file:{sys.argv[1]}?mode=ro", uri=True)
def chunks(role):
    return db.execute("SELECT c.name, c.count, group_concat(p.name) FROM stage_output o JOIN chunk c ON c.layer = o.layer JOIN plane p ON"
                      " p.chunk = c.id WHERE o.role = ? GROUP BY c.id ORDER BY c.ordinal", (role,)).fetchall()
baked, seen, levels = chunks("baked"), chunks("visibility"), chunks("levels")
assert [c[:2] for c in baked] == [c[:2] for c in seen] and len(seen) > 8
assert all(sorted(c[2].split(",")) == ["prominence", "visibility"] for c in seen)
assert all({"prominence", "visibility"} <= set(c[2].split(",")) for c in levels)
E0

# off, and on again: no layer, other levels, and nothing is drawn anew
lod two.db --visibility off
[ -z "$(seen two.db)" ] || fail "--visibility off leaves a layer"
[ "$(number two.json '"visibility" in d')" = False ] || fail "--visibility off is reported as on"
[ "$(digest one.db | grep '^layer levels')" != "$(digest two.db | grep '^layer levels')" ] || fail "visibility weighs nothing"
lod two.db --visibility auto
same one.db two.db
[ "$(number two.json 'd["units"]["done"]')" = 0 ] || fail "what was stored is computed again"

# fewer cameras see other things; the split of the others does not matter
lod two.db --views 2
[ "$(number two.json 'd["visibility"]["views"]')" = 2 ] || fail "not two cameras"
[ "$(seen one.db)" != "$(seen two.db)" ] || fail "two cameras see what all see"
must 2 kiln lod two.db --views 0
must 2 kiln lod two.db --visibility on

# one opacity changed: few chunks see it, and only these and the cells above are merged again
cp -r s moved
edit_ply moved/scene.ply opacity 1200 'v + 0.125'
cp one.db moved.db
chunked moved moved.db
lod moved.db
python3 - one.db moved.db moved.json <<'E2' || fail "other chunks changed than those whose rows are seen otherwise"
import json, sqlite3, sys
def chunks(path, role):
    db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    return {name: planes for name, planes in db.execute(
        "SELECT c.name, group_concat(p.name || hex(s.hash)) FROM stage_output o JOIN chunk c ON c.layer = o.layer"
        " JOIN plane p ON p.chunk = c.id JOIN plane_segment s ON s.plane = p.id WHERE o.role = ? GROUP BY c.id", (role,))}
def changed(role):
    old, new = (chunks(path, role) for path in sys.argv[1:3])
    return {name for name in old if old[name] != new[name]}, len(old)
baked, n = changed("baked")
seen, _ = changed("visibility")
merged = {name.split("@")[0] for name in changed("levels")[0]}
leaves = set(chunks(sys.argv[1], "baked"))
assert len(baked) == 1 and len(seen) < n / 2, (baked, seen, n)
assert merged & leaves == baked | seen, (merged & leaves, baked, seen)
E2

# what stands behind others is hidden: all of them opaque
cp -r s opaque
edit_ply opaque/scene.ply opacity all 6
chunked opaque opaque.db
lod opaque.db
[ "$(number opaque.json 'd["visibility"]["hidden"]')" -gt "$(number one.json 'd["visibility"]["hidden"]')" ] || fail "opaque Gaussians hide no more"

# the orbit that a scene without cameras gets
mkdir bare && python3 "$TESTS/far.py" bare near && rm bare/cameras.json || fail 'an object'
chunked bare/scene.ply bare.db
lod bare.db
[ -n "$(seen bare.db)" ] || fail "the orbit of a scene without cameras sees nothing"

# What is stored of visibility may be other bytes of the same size under a right hash: the unit is named, and the same command computes
# it again. kiln-verify sees that the layer has another plane.
# spoil DB UNIT [due [OUTPUT]]: an opacity plane of the same rows in the place of the unit's largest output, or of one
spoil() {
    cp one.db "$1"
    python3 - "$@" <<'E4' || fail "cannot spoil '$2'"
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
unit, output, n = db.execute("SELECT u.id, o.name, o.raw_bytes FROM unit u JOIN unit_output o ON o.unit = u.id WHERE u.stage = 'lod'"
                             " AND u.name LIKE ? AND o.name LIKE ? ORDER BY o.raw_bytes DESC, o.name DESC",
                             (sys.argv[2] + '%', sys.argv[4] if len(sys.argv) > 4 else '%')).fetchone()
other, = db.execute("SELECT s.hash FROM plane p JOIN plane_segment s ON s.plane = p.id WHERE p.name = 'opacity_logits' AND p.raw_bytes = ?", (n,)).fetchone()
assert db.execute("UPDATE unit_output SET hash = ? WHERE unit = ? AND name = ?", (other, unit, output)).rowcount == 1
if len(sys.argv) > 3 and sys.argv[3] == 'due': db.execute("UPDATE stage SET input_key = randomblob(16) WHERE name = 'lod'")
E4
}
for output in 'visibility of :visibility' 'visibility of :prominence' 'views 1 of :%'; do
    unit=${output%:*}
    spoil spoiled.db "$unit" due "${output#*:}"
    must 74 kiln lod spoiled.db
    grep -q "what is stored of unit '$unit[^']*' cannot be used: .*; the same command computes it again$" err || fail "kiln-lod says: $(cat err)"
    must 0 kiln lod spoiled.db
    must 0 kiln verify spoiled.db
    same one.db spoiled.db
done
for plane in prominence visibility; do
    spoil spoiled.db 'visibility of ' '' $plane
    must 74 kiln verify spoiled.db
    grep -q "unit 'visibility of [^']*' keeps another $plane than the layer has; kiln-lod --force" err || fail "kiln-verify says: $(cat err)"
done
must 70 kiln lod spoiled.db --force
must 0 kiln lod spoiled.db --force
must 0 kiln verify spoiled.db
same one.db spoiled.db
# units of other options are no damage
cp one.db options.db
lod options.db --views 3
lod options.db --views 32
