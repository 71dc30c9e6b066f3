#!/bin/bash
# kiln-lod: levels of every chunk and of the cells above, the same bits on any threads, under a cap, killed and shared out among hosts; a
# changed chunk leads to its ancestors alone; bakes without levels stay as they are; odd scenes.
. tests/e2e/lib.sh
cd "$KILN_TMP" || exit 1
number() { python3 -c 'import json, sys; d = json.load(open(sys.argv[1])); print(eval(sys.argv[2], {}, {"d": d}))' "$1" "$2"; }
chunked() { kiln import "$1" "$2" >/dev/null && kiln knn "$2" >/dev/null && kiln prune "$2" >/dev/null && kiln chunk "$2" "${@:3}" >/dev/null || fail "bake of $1"; }
nothing() { "$KILN_BIN/kiln-lod" "$@" 2>&1 | grep -q 'nothing to do' || fail "something to do: kiln lod $*"; }

scene s 6000 3 160x120
chunked s base.db --max 512
before=$(digest base.db)
cp base.db one.db
must 0 kiln lod one.db --coarsest 256 --threads 1 --dry-run
[ "$before" = "$(digest one.db)" ] || fail "--dry-run left something"
must 0 kiln lod one.db --coarsest 256 --threads 1 --json
cp out one.json
chunks=$(number one.json 'd["chunks"]') nodes=$(number one.json 'd["nodes"]')
[ "$nodes" -gt "$chunks" ] && [ "$chunks" -gt 8 ] || fail "$chunks chunks and $nodes nodes"
[ "$(number one.json 'd["levels"][0]["nodes"]')" = "$chunks" ] || fail "not every chunk has level 1"
[ "$(number one.json 'd["levels"][-1]["nodes"]')" = 1 ] || fail "there is not one root"
[ "$(number one.json 'd["levels"][-1]["gaussians"] <= 256')" = True ] || fail "the root has more than --coarsest"
[ "$(number one.json 'd["units"]["done"]')" -ge "$nodes" ] || fail "not a unit for each node"
[ "$before" = "$(digest one.db | grep -v '^layer levels\|^layer visibility')" ] || fail "kiln-lod changed something else"
digest one.db | grep -q '^layer levels' || fail "there are no levels"
must 0 kiln verify one.db
nothing one.db
must 0 kiln gc one.db
nothing one.db

# the table of levels, and the same numbers as JSON
must 0 "$KILN_BIN/kiln-info" base.db --lod
grep -q '^no levels of detail' out || fail "levels that are not there"
must 0 "$KILN_BIN/kiln-info" one.db --lod
[ -z "$(awk '/^level/ { on = 1 } /^$/ { on = 0 } on && length > 110' out)" ] || fail "the table is wider than 110 columns"
must 0 "$KILN_BIN/kiln-info" one.db --lod --json
python3 - out one.json <<'E0' || fail "kiln-info counts otherwise than kiln-lod"
import json, sys
rows, made = json.load(open(sys.argv[1]))["levels"]["rows"], json.load(open(sys.argv[2]))["levels"]
assert [(r["level"], r["nodes"], r["gaussians"]) for r in rows[1:]] == [(l["level"], l["nodes"], l["gaussians"]) for l in made]
assert rows[0]["drawn"] == rows[0]["gaussians"] == 6000 and rows[-1]["drawn"] == rows[-1]["gaussians"]
assert all(a["drawn"] >= b["drawn"] and a["bytes"] > 0 for a, b in zip(rows, rows[1:]))
figures = json.load(open(sys.argv[1]))["levels"]["figures"] # near, median and far, of three sizes
assert [(f["place"], f["size"]) for f in figures] == [(p, s) for s in (1, 0.5, 0.25) for p in ("near", "median", "far")]
near, median, far = figures[:3]
assert near["footprint"] <= median["footprint"] <= far["footprint"] and 1.9 < figures[4]["footprint"] / median["footprint"] < 2.1
for row in rows[1:]:
    assert len(row["psnr"]) == 9 and all(v > 5 for v in row["psnr"]), row
E0

# two threads on a CPU without AVX2; a cap; killed again and again; over hosts
cp base.db two.db
must 0 env KILN_ISA=baseline "$KILN_BIN/kiln-lod" two.db --quiet --coarsest 256 --threads 2
same one.db two.db
cp base.db capped.db
must 0 kiln lod capped.db --coarsest 256 --ram 256M --json
[ "$(number out 'd["ram_peak_bytes"] <= d["ram_cap_bytes"] == 256 << 20')" = True ] || fail "the cap was exceeded"
same one.db capped.db
cp base.db killed.db
kills=0
for kill in 20:20 8:10 4:1 3:1 2:1 1:1; do # at least the unit in which the run before hung is computed
    unit=${kill%:*} more=${kill#*:}
    killed_when_stored killed.db lod $(($(stored killed.db lod) + more)) env KILN_FAULT="unit=$unit:hang" "$KILN_BIN/kiln-lod" killed.db --quiet --coarsest 256 --threads 2
    code=$?
    # A kill comes late on a busy machine: the other thread has then computed the unit in which the next run is to hang, which ends.
    [ $code != 0 ] || [ $kills -lt 2 ] || break
    [ $code = 137 ] || fail "the run that hangs in unit $unit ended with $code"
    kills=$((kills + 1))
    must 0 kiln verify killed.db
done
must 0 kiln lod killed.db --coarsest 256 --json
[ "$(number out 'd["units"]["cached"]')" -gt 0 ] || fail "nothing was kept of the runs that were killed"
same one.db killed.db
cp base.db hosts.db
must 0 kiln lod hosts.db --coarsest 256 --plan --tasks 2
must 4 kiln lod hosts.db --shard 1/2 --part parts # of other options, although chunks are merged alike
must 4 kiln lod hosts.db --gather parts
grep -q 'the same options as --plan was given' err || fail "it does not say what to do: $(cat err)"
for i in 1 2; do must 0 kiln lod hosts.db --coarsest 256 --shard $i/2 --part parts; done
for i in 1 2 3 4 5 6; do [ -e hosts.db.claim ] && must 0 kiln lod hosts.db --coarsest 256 --gather parts --remove-parts; done
[ ! -e hosts.db.claim ] || fail "the rounds do not end"
same one.db hosts.db
must 0 kiln lod two.db --force
same one.db two.db

# A stored result of a chunk that cannot be used is dropped, and the same command makes it again: a size, a plane, errors that are
# the bounds of a level.
for change in "UPDATE unit_output SET raw_bytes = raw_bytes - 4 WHERE name = '4 means'" "DELETE FROM unit_output WHERE name = '4 quats'" \
    "UPDATE unit_output SET (hash, raw_bytes) = (SELECT hash, raw_bytes FROM unit_output AS o WHERE o.unit = unit_output.unit AND o.name = '4 bounds') WHERE name = 'errors'"; do
    cp killed.db bad.db
    python3 -c 'import sqlite3, sys; db = sqlite3.connect(sys.argv[1]); db.execute(sys.argv[2] + " AND unit IN (SELECT id FROM unit WHERE stage = ? AND name LIKE ? LIMIT 1)", ("lod", "chunk %")); db.commit()' bad.db "$change"
    must 74 kiln lod bad.db --levels 4 --coarsest 300
    grep -q 'the same command computes it again' err || fail "it does not say what to do: $(cat err)"
    must 0 kiln lod bad.db --levels 4 --coarsest 300
    must 0 kiln verify bad.db
done

# other options, and the first ones again
must 0 kiln lod two.db --levels 2
[ "$(digest one.db)" != "$(digest two.db)" ] || fail "--levels changed nothing"
must 0 kiln lod two.db --reset --coarsest 256
same one.db two.db
must 2 kiln lod two.db --levels 0
must 2 kiln lod two.db --near -1

# One opacity changed, without visibility: its chunk and the cells above, no other unit. The root is at most eleven cells up.
edit_ply s/scene.ply opacity 3000 'v + 0.125'
must 0 kiln lod one.db --visibility off
cp one.db old.db
chunked s one.db
must 0 kiln lod one.db --visibility off --json
python3 - old.db one.db out <<'E2' || fail "other units were computed than those of the chunk and the cells above it"
import json, sqlite3, sys
def chunks(path, role):
    db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    return {name: (parent, planes) for name, parent, planes in db.execute(
        "SELECT c.name, c.parent, group_concat(p.name || hex(s.hash)) FROM stage_output o JOIN chunk c ON c.layer = o.layer"
        " JOIN plane p ON p.chunk = c.id JOIN plane_segment s ON s.plane = p.id WHERE o.role = ? GROUP BY c.id", (role,))}
old, new = chunks(sys.argv[1], "baked"), chunks(sys.argv[2], "baked")
assert old.keys() == new.keys()
due = {name for name in old if old[name] != new[name]}
assert len(due) == 1, due
before, after = chunks(sys.argv[1], "levels"), chunks(sys.argv[2], "levels")
above = {name.split("@")[0]: parent for name, (parent, _) in after.items()}
node, = due
while node := above[node]:
    due.add(node)
assert len(due) > 2, due
done = json.load(open(sys.argv[3]))["units"]["done"]
assert done == len(due), (done, due)
assert {name.split("@")[0] for name in after if before[name] != after[name]} == due
E2
must 0 kiln verify one.db

# levels of chunks that are no longer drawn
must 0 kiln chunk old.db --max 1024
must 0 "$KILN_BIN/kiln-info" old.db --lod --json
[ "$(number out '(d["levels"]["current"], d["levels"]["rows"][0]["level"])')" = "(False, 1)" ] || fail "it says something of chunks that are gone"
must 0 "$KILN_BIN/kiln-info" old.db --lod
grep -q '^levels of detail of other chunks' out || fail "it does not say that levels are of other chunks"

# a cap below one unit: exit 5, and the cap that it names works
chunked s tiny.db
must 5 kiln lod tiny.db --ram 20M
mib=$(sed -n 's/.*the least that works is --ram \([0-9]*\)M$/\1/p' err)
[ -n "$mib" ] || fail "it does not say the least that works: $(cat err)"
must 5 kiln lod tiny.db --ram "$((mib - 8))M"
must 0 kiln lod tiny.db --ram "${mib}M" --json
[ "$(number out 'd["nodes"]')" = 1 ] || fail "one chunk is not the root"
must 0 kiln verify tiny.db

# every degree of spherical harmonics, and chunks of one Gaussian
python3 - <<'E3'
import random, struct
random.seed(5)
for degree in range(5):
    names = ["x", "y", "z", "f_dc_0", "f_dc_1", "f_dc_2"] + [f"f_rest_{i}" for i in range(3 * ((degree + 1) ** 2 - 1))]
    names += ["opacity", "scale_0", "scale_1", "scale_2", "rot_0", "rot_1", "rot_2", "rot_3"]
    with open(f"sh{degree}.ply", "wb") as f:
        f.write(("ply\nformat binary_little_endian 1.0\nelement vertex 120\n" + "".join(f"property float {n}\n" for n in names) + "end_header\n").encode())
        for _ in range(120):
            f.write(struct.pack(f"<{len(names)}f", *(random.uniform(-4, -2) if n.startswith("scale") else random.uniform(-1, 1) for n in names)))
E3
for degree in 0 1 2 3 4; do
    chunked sh$degree.ply sh$degree.db --max $((degree == 2 ? 1 : 40)) --min 1
    must 0 kiln lod sh$degree.db --json
    [ "$(number out 'd["levels"][-1]["gaussians"] >= 1 and d["nodes"] > d["chunks"] > 3')" = True ] || fail "degree $degree: $(cat out)"
    must 0 kiln verify sh$degree.db
done

# nothing to merge: no chunks yet; points; no rows
kiln import s none.db >/dev/null
must 4 kiln lod none.db
kiln generate points p --gaussians 300 >/dev/null || fail "points"
chunked p points.db --max 64
must 0 kiln lod points.db --levels 8 --coarsest 1
must 0 kiln verify points.db
kiln prune none.db >/dev/null 2>&1
kiln knn none.db >/dev/null && kiln prune none.db --filter-box 900,900,900,901,901,901 >/dev/null && kiln chunk none.db >/dev/null || fail "a bake without rows"
must 0 kiln lod none.db
must 0 kiln verify none.db
nothing none.db

# the pipeline makes them where it is asked, and keeps them up to date from then on
front() { "$KILN_BIN/kiln" pipeline s --out bake --max 512 "$@" >out 2>err || { cat err >&2; fail "kiln pipeline $*"; }; }
front
! digest bake/manifest.db | grep -q '^layer levels' || fail "levels that nobody asked for"
plain=$(digest bake/manifest.db)
front --lod
[ "$plain" = "$(digest bake/manifest.db | grep -v '^layer levels\|^layer visibility')" ] || fail "levels changed the bake"
digest bake/manifest.db | grep -q '^layer levels' || fail "--lod made no levels"
front --max 1024
must 0 kiln info bake/manifest.db --json
[ "$(number out '[s["state"] for s in d["stages"] if s["name"] == "lod"]')" = "['fresh']" ] || fail "levels were left behind"
