#!/bin/bash
# kiln-report: one file that loads nothing, of a whole bake, of one that has just begun and of a stranger's whose texts are markup.
. tests/e2e/lib.sh
command -v python3 >/dev/null || skip 'no python3'
export PYTHONPATH=tests/e2e PYTHONDONTWRITEBYTECODE=1
T=$KILN_TMP
scene "$T/scene" 3000 3 96x64
bake "$T/scene" "$T/m.db"
page() { python3 tests/e2e/report.py "$1" || fail "the page $1"; }
has() { grep -qF -- "$2" "$1" || fail "$1 lacks '$2'"; }
lacks() { ! grep -qF -- "$2" "$1" || fail "$1 has '$2'"; }

# beside the manifest, and where -o says; the same bytes twice; nothing else is written
must 0 kiln report "$T/m.db"
page "$T/report.html"
must 0 kiln report "$T/m.db" -o "$T/deep/er/r.html"
cmp -s "$T/report.html" "$T/deep/er/r.html" || fail 'two reports of one bake differ'
before=$(cksum "$T/m.db")
must 0 kiln report "$T/m.db" --json -o "$T/r.html"
python3 -c 'import json, os, sys; r = json.load(open(sys.argv[1])); assert r["bytes"] == os.path.getsize(r["path"]), r' "$T/out" || fail '--json'
[ "$(cksum "$T/m.db")" = "$before" ] || fail 'the manifest was changed'
for word in '<h2>Import</h2>' '<h2>Pruning</h2>' '<h2>Cameras</h2>' '<h2>Chunks</h2>' '<h2>Runs</h2>' '<h2>Record</h2>' 'From above' 'counting pairs' 'Predicted' '3,000' 'min-opacity' 'kiln-render 0' '--max-spacing'; do has "$T/report.html" "$word"; done
digest "$T/m.db" | while read -r _ _ hash; do has "$T/report.html" "$hash" || exit 1; done || exit 1

# a bake that has just begun has no section of what is to come
must 0 kiln import "$T/scene" "$T/new.db"
must 0 kiln report "$T/new.db" -o "$T/new.html"
page "$T/new.html"
for word in Pruning Cameras Chunks; do lacks "$T/new.html" "<h2>$word</h2>"; done
lacks "$T/report.html" 'quarantined'
lacks "$T/report.html" 'Levels of detail'

# what is wrong is said by an exit code and leaves no file
must 2 kiln report
must 2 kiln report "$T/m.db" -o "$T/scene"
must 2 kiln report "$T/m.db" -o "$T/"
must 3 kiln report "$T/scene/scene.ply" -o "$T/none.html"
must 3 kiln report "$T/not-there.db" -o "$T/none.html"
mkfifo "$T/pipe.html"
must 74 kiln report "$T/m.db" -o "$T/pipe.html"
[ ! -e "$T/none.html" ] || fail 'a report of nothing'
ln -s "$T/elsewhere.html" "$T/deep/report.html"
cp "$T/m.db" "$T/deep/m.db"
must 3 kiln report "$T/deep/m.db"
[ ! -e "$T/elsewhere.html" ] || fail 'a link in a stranger'"'"'s folder was followed'

# a stranger's: every text is markup
cp "$T/m.db" "$T/evil.db"
python3 - "$T/evil.db" <<'PY' || fail 'cannot make the stranger'
import json, sqlite3, sys
db = sqlite3.connect(sys.argv[1])
evil = "</script></style>--><img src=x onerror=alert(1)>\"'><svg onload=alert(2)>"
db.execute("UPDATE scene SET name = ?, up_axis = ?, unit = ?", ("scene" + evil, evil[:40], evil[-20:]))
db.execute("UPDATE run SET device = ?, program = ?", ("device" + evil, "program" + evil))
for id, text in db.execute("SELECT id, parameters FROM run").fetchall():
    p = json.loads(text)
    p["key" + evil] = "value" + evil
    db.execute("UPDATE run SET parameters = ? WHERE id = ?", (json.dumps(p), id))
for id, text in db.execute("SELECT id, counters FROM run").fetchall():
    c = json.loads(text)
    for name in ("dropped", "frames_dropped_by", "rules"):
        c[name] = {"reason" + evil: 3 if name != "rules" else {"dropped": 5, "policy": evil}}
    c["split"] = {"rule": "split" + evil}
    db.execute("UPDATE run SET counters = ? WHERE id = ?", (json.dumps(c), id))
db.execute("INSERT INTO quarantine VALUES (randomblob(16), 'tiles', ?, 3, ?, ?, 1795470251865196815)", ("unit" + evil, "gpu" + evil, "reason of it" + evil))
db.execute("UPDATE source_file SET role = 'r' || substr(?, 1, 25)", (evil,))
db.commit()
PY
must 0 kiln report "$T/evil.db" -o "$T/evil.html"
page "$T/evil.html"
python3 - "$T/evil.html" <<'PY' || fail 'what a stranger wrote is not told as it is'
import sys, report
p = report.page(sys.argv[1])
evil = "</script></style>--><img src=x onerror=alert(1)>\"'><svg onload=alert(2)>"
for word in ("scene", "device", "program", "--key", "value", "split", "reason", "unit", "gpu", "reason of it"):
    assert word + evil in p.text, word
PY
# counters of other types than ours
python3 - "$T/evil.db" <<'PY' || fail 'cannot make the stranger'
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
for i, text in enumerate(['[]', '{"rules":[1],"dropped":"x","split":7,"units":[]}', '{"rules":{"a":[],"b":7},"dropped":{"c":-1,"d":[]}}', '{}', '{"rules":{"a":{"dropped":1e300,"limit":"x"}}}', '{"rows":-5,"kept":[],"rules":{"min-opacity":{"limit":1e308}}}']):
    db.execute("UPDATE run SET counters = ?, parameters = ? WHERE id = ?", (text, text, i + 1))
db.execute("UPDATE run SET start_ns = 9223372036854775807, stop_ns = 0")
db.commit()
PY
must 0 kiln report "$T/evil.db" -o "$T/odd.html"
page "$T/odd.html"

# rules at other limits and distributions, counted in what prune read
mkdir "$T/rows"
python3 - "$T/rows/scene.ply" <<'PY' || fail 'cannot write the scene'
import struct, sys
from math import log
names = ["x", "y", "z", "f_dc_0", "f_dc_1", "f_dc_2", "opacity", "scale_0", "scale_1", "scale_2", "rot_0", "rot_1", "rot_2", "rot_3"]
with open(sys.argv[1], "wb") as f:
    f.write(("ply\nformat binary_little_endian 1.0\nelement vertex 1000\n" + "".join(f"property float {n}\n" for n in names) + "end_header\n").encode())
    for i in range(1000):  # 40 of opacity 0.03, 7 needles of 30 : 1, the others all alike
        opacity, needle = 0.03 if i < 40 else 0.8, 30 if 100 <= i < 107 else 1
        f.write(struct.pack("<14f", i % 10, i // 10 % 10, i // 100, 0, 0, 0, log(opacity / (1 - opacity)), log(0.05 * needle), log(0.05), log(0.05), 1, 0, 0, 0))
PY
must 0 kiln import "$T/rows" "$T/rows.db"
must 0 kiln knn "$T/rows.db"
must 0 kiln prune "$T/rows.db" --min-opacity 0.04
must 0 kiln report "$T/rows.db" -o "$T/rows.html"
page "$T/rows.html"
for word in '<small>0.02</small><b>0</b>' '<td class="n now"><small>0.04</small><b>40</b>' '<small>0.05</small><b>40</b>' '<small>20</small><b>7</b>' '<small>50</small><b>0</b>' 'Longest axis'; do has "$T/rows.html" "$word"; done

# photo, picture, difference and tiles of each camera, encoded anew; the worst first
must 0 kiln generate demo "$T/demo" --gaussians 4000 --cameras 5 --size 160x96
bake "$T/demo" "$T/demo/bake/manifest.db"
M=$T/demo/bake/manifest.db
must 0 kiln report "$M"
page "$T/demo/bake/report.html"
# shown PAGE NAME...: cameras that show a layer, "NAME:layer layer ..."
shown() {
    python3 - "$1" <<'PY'
import base64, sys, report
p = report.page(sys.argv[1])
n = {}
for tag, a in p.tags:
    if tag in ("img", "image"):
        kind, data = a["src" if tag == "img" else "href"].split(";base64,")
        head = base64.b64decode(data)[:12]
        assert head[:3] == b"\xff\xd8\xff" if kind == "data:image/jpeg" else head[8:] == b"WEBP", kind
        layer = a["alt"].lower() if tag == "img" else "tiles"
        n[layer] = n.get(layer, 0) + 1
print(*(f"{k}:{n[k]}" for k in sorted(n)))
PY
}
said() { [ "$(shown "$1")" = "$2" ] || fail "$1 shows $(shown "$1"), not $2"; }
said "$T/demo/bake/report.html" 'difference:5 photo:5 picture:5 tiles:5'
python3 - "$M" "$T/demo/bake/report.html" <<'PY' || fail 'the worst is not the first'
import re, sqlite3, sys
names = [n for n, in sqlite3.connect(sys.argv[1]).execute("SELECT camera FROM image ORDER BY psnr")]
assert re.findall("<h3 class=\"name\">(\\w+)", open(sys.argv[2]).read()) == names, names
PY

# levels of detail, where there are any, drawn beside the full scene as kiln-render does
cp "$M" "$T/lod.db"
must 0 kiln lod "$T/lod.db"
must 0 kiln report "$T/lod.db" -o "$T/lod.html"
page "$T/lod.html"
has "$T/lod.html" '<h2>Levels of detail</h2>'
said "$T/lod.html" 'difference:3 full:3 level:3 photo:5 tiles:5'
must 0 kiln render "$T/lod.db" --levels-against "$T/against" --format none --devices cpu --json
python3 - "$T/out" "$T/lod.html" <<'PY' || fail 'levels are not drawn as kiln-render draws them'
import json, re, sys
want = {r["level"]: r["psnr"] for r in json.load(open(sys.argv[1]))["levels_against"]}
got = re.findall("<h4>Level (\\d+).*?class=\"numbers\">([0-9.]+) dB", open(sys.argv[2]).read())
assert got and all(abs(float(db) - want[int(level)]) < 0.006 for level, db in got), (got, want)
PY

# pictures of another level than the tile maps: said. Cameras far from the scene: at the map's edge, and said
lacks "$T/lod.html" 'Pictures are of --level'
must 0 kiln render "$T/lod.db" --level 1 --format none
python3 - "$T/lod.db" <<'PY' || fail 'cannot move a camera'
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
db.execute("UPDATE camera SET t0 = 1e7 WHERE name = 'view_03'")
db.commit()
PY
must 0 kiln report "$T/lod.db" -o "$T/lod.html"
page "$T/lod.html"
has "$T/lod.html" 'Pictures are of --level 1, tile maps of --level 0: they do not show the same Gaussians.'
has "$T/lod.html" '1 camera is farther away than the maps reach'
[ "$(grep -o '<circle r="2.6" class="far"[^>]*><title>view_03, farther away' "$T/lod.html" | wc -l)" = 2 ] || fail 'the far camera is not a ring in both maps'

# tasks of several hosts stand in the time line, each list of units on each host
cp "$M" "$T/hosts.db"
export KILN_ROUND_S=0
must 0 kiln tiles "$T/hosts.db" --profile gsplat-1.6 --plan --tasks 2
for round in 1 2; do
    for i in 1 2; do must 0 kiln tiles "$T/hosts.db" --profile gsplat-1.6 --shard $i/2 --part "$T/parts"; done
    must 0 kiln tiles "$T/hosts.db" --profile gsplat-1.6 --gather "$T/parts"
done
unset KILN_ROUND_S
[ "$(python3 -c 'import json, socket, sqlite3, sys; print({json.loads(c)["host"] for c, in sqlite3.connect(sys.argv[1]).execute("SELECT counters FROM run")} == {socket.gethostname()})' "$T/hosts.db")" = True ] || fail 'a run does not say on which host it was'
python3 - "$T/hosts.db" <<'PY' || fail 'cannot name the hosts'
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
tasks = [i for i, in db.execute("SELECT id FROM run WHERE instr(counters, '\"part stored\"') ORDER BY id")]
assert len(tasks) == 4, tasks
for k, i in enumerate(tasks):
    db.execute("UPDATE run SET counters = json_set(counters, '$.host', ?) WHERE id = ?", (f"node<{k % 2}>", i))
db.commit()
PY
must 0 kiln report "$T/hosts.db" -o "$T/hosts.html"
page "$T/hosts.html"
for word in '15 units in 4 tasks on 2 hosts' '>counting pairs</th>' ' in 1 task on node&lt;1&gt;' '<td>node&lt;0&gt;</td>'; do has "$T/hosts.html" "$word"; done

# photos of a stranger's manifest: not in source_file, changed since, a pipe, a link, no picture; pictures outside of the bake
cp "$T/demo/images/view_00.png" "$T/secret.png"
mkfifo "$T/pipe.png"
ln -s "$T/secret.png" "$T/link.png"
cp "$M" "$T/demo/bake/evil.db"
python3 - "$T/demo/bake/evil.db" "$T" <<'PY' || fail 'cannot make the stranger'
import os, sqlite3, sys
db, t = sqlite3.connect(sys.argv[1]), sys.argv[2]
def photo(camera, path, listed):  # listed: with the size and hash of the photo that it was
    old, = db.execute("SELECT path FROM photo WHERE camera = ?", (camera,)).fetchone()
    db.execute("UPDATE photo SET path = ? WHERE camera = ?", (path, camera))
    if listed:
        db.execute("UPDATE source_file SET path = ? WHERE path = ?", (path, old))
photo("view_00", t + "/secret.png", False)
photo("view_01", t + "/pipe.png", True)
photo("view_02", "/etc/passwd", True)
photo("view_03", t + "/link.png", True)
db.execute("UPDATE image SET path = 'renders/outside/view_00.png' WHERE camera = 'view_00'")
db.execute("UPDATE image SET path = 'renders' WHERE camera = 'view_01'")
db.execute("UPDATE image SET path = 'renders/away.png' WHERE camera = 'view_02'")
os.symlink(t + "/secret.png", t + "/demo/bake/renders/away.png")
os.symlink(t + "/demo/images", t + "/demo/bake/renders/outside")
os.mkfifo(t + "/demo/bake/renders/pipe.png")
db.execute("UPDATE image SET path = 'renders/pipe.png' WHERE camera = 'view_03'")
db.commit()
PY
must 0 timeout 60 "$KILN_BIN/kiln-report" --quiet "$T/demo/bake/evil.db" -o "$T/evil.html"
page "$T/evil.html"
said "$T/evil.html" 'difference:1 photo:1 picture:1 tiles:5'
has "$T/evil.html" 'The photo is not among the files that import read.'
cp "$T/demo/images/view_04.png" "$T/view_04.png"
echo changed >>"$T/demo/images/view_04.png"
must 0 kiln report "$T/demo/bake/evil.db" -o "$T/evil.html"
said "$T/evil.html" 'picture:1 tiles:5'
has "$T/evil.html" 'The file has changed since it was imported.'
cp "$T/view_04.png" "$T/demo/images/view_04.png"
# another picture with as many bytes
python3 - "$T/demo/images" "$T/was" <<'PY' || fail 'cannot change a photo'
import os, shutil, sys
names = sorted((os.path.join(sys.argv[1], n) for n in os.listdir(sys.argv[1])), key=os.path.getsize)
shutil.copytree(sys.argv[1], sys.argv[2])
size, data = os.path.getsize(names[-1]), open(names[0], "rb").read()
open(names[-1], "wb").write(data + bytes(size - len(data)))
PY
must 0 kiln report "$M" -o "$T/evil.html"
said "$T/evil.html" 'difference:4 photo:4 picture:5 tiles:5'
rm -r "$T/demo/images" && mv "$T/was" "$T/demo/images"

# --max-mb leaves out cameras, and says so
must 2 kiln report "$M" --max-mb 0
must 0 kiln generate demo "$T/many" --gaussians 8000 --cameras 26 --size 256x160
bake "$T/many" "$T/many/bake/manifest.db"
must 0 kiln report "$T/many/bake/manifest.db"
page "$T/many/bake/report.html"
said "$T/many/bake/report.html" 'difference:24 photo:24 picture:24 tiles:24'
has "$T/many/bake/report.html" '24 of 26 cameras'
must 0 kiln report "$T/many/bake/manifest.db" --max-mb 1
page "$T/many/bake/report.html"
has "$T/many/bake/report.html" 'left out because of --max-mb'
[ "$(stat -c %s "$T/many/bake/report.html")" -le 1000000 ] || fail 'the page is larger than --max-mb'

# --against: what is another than in the other bake
must 0 kiln report "$M" --against "$M" -o "$T/same.html"
page "$T/same.html"
has "$T/same.html" 'as before'
for word in 'Other parameters' 'class="worse"'; do lacks "$T/same.html" "$word"; done
cp "$M" "$T/demo/bake/other.db"
for s in import knn prune chunk tiles render; do
    if [ $s = import ]; then must 0 kiln import "$T/demo" "$T/demo/bake/other.db"; elif [ $s = prune ]; then must 0 kiln prune "$T/demo/bake/other.db" --min-opacity 0.9; else must 0 kiln $s "$T/demo/bake/other.db"; fi
done
must 0 kiln report "$T/demo/bake/other.db" --against "$M" -o "$T/other.html"
page "$T/other.html"
for word in '<h2>Compared</h2>' '<th scope="row">kiln-prune --min-opacity</th><td class="hash">0.00392156862745098</td><td class="hash">0.9</td>' 'class="worse"' '<th scope="row">min-opacity</th><td class="n">0</td>'; do has "$T/other.html" "$word"; done
has "$T/other.html" 'Both bakes write their pictures into one folder'
mkdir "$T/apart"
cp "$T/demo/bake/other.db" "$T/apart/manifest.db"
cp -r "$T/demo/bake/renders" "$T/apart/renders"
must 0 kiln render "$M" --force
must 0 kiln report "$T/apart/manifest.db" --against "$M" -o "$T/other.html"
page "$T/other.html"
said "$T/other.html" 'difference:9 other:4 photo:5 picture:5 this:4 tiles:5'
must 0 kiln report "$T/demo/bake/other.db" --against "$T/evil.db" -o "$T/other.html"
page "$T/other.html"
must 3 kiln report "$M" --against "$T/not-there.db" -o "$T/none.html"
must 3 kiln report "$M" --against "$T/scene/scene.ply" -o "$T/none.html"
[ ! -e "$T/none.html" ] || fail 'a report against nothing'

# a folder that nothing can be written into: told at once, with what to do
if [ "$(id -u)" = 0 ] && mkdir "$T/fixed" && mount -t tmpfs -o size=64m none "$T/fixed" 2>/dev/null; then
    trap 'umount -l "$T/fixed"' EXIT
    cp -r "$T/many/bake" "$T/fixed/bake" && rm -f "$T/fixed/bake/report.html" && mount -o remount,ro "$T/fixed" || fail remount
    must 74 kiln report "$T/fixed/bake/manifest.db"
    grep -q "cannot write '$T/fixed/bake/report.html': Read-only file system; -o FILE writes the report elsewhere$" "$KILN_TMP/err" || fail "no hint: $(cat "$KILN_TMP/err")"
    must 74 kiln report "$T/fixed/bake/manifest.db" -o "$T/fixed/r.html"
    grep -q "'$T/fixed/r.html': Read-only file system; -o FILE writes the report elsewhere$" "$KILN_TMP/err" || fail "no hint: $(cat "$KILN_TMP/err")"
    must 0 kiln report "$T/fixed/bake/manifest.db" -o "$T/elsewhere/r.html"
    for command in "export $T/fixed/bake/manifest.db -o $T/fixed/x.ply" "info $T/fixed/bake/manifest.db --cameras -o $T/fixed/x.json" "generate demo $T/fixed/demo" \
        "render $T/fixed/bake/manifest.db --camera view_00 -o $T/fixed/v.png" "render $T/fixed/bake/manifest.db --orbit 2 -o $T/fixed/o/"; do
        # shellcheck disable=SC2086 # words
        must 74 kiln $command
        grep -q 'Read-only file system; make the folder writable, or choose another place$' "$KILN_TMP/err" || fail "no hint: $(cat "$KILN_TMP/err")"
    done
else
    echo "no tmpfs without root"
fi
exit 0
