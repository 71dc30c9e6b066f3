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
for word in '<h2>Import</h2>' '<h2>Pruning</h2>' '<h2>Record</h2>' '3,000' 'min-opacity' 'kiln-render 0' '--max-spacing'; do has "$T/report.html" "$word"; done
digest "$T/m.db" | while read -r _ _ hash; do has "$T/report.html" "$hash" || exit 1; done || exit 1

# a bake that has just begun has no section of what is to come
must 0 kiln import "$T/scene" "$T/new.db"
must 0 kiln report "$T/new.db" -o "$T/new.html"
page "$T/new.html"
lacks "$T/new.html" '<h2>Pruning</h2>'

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
db.execute("UPDATE source_file SET role = 'r' || substr(?, 1, 25)", (evil,))
db.commit()
PY
must 0 kiln report "$T/evil.db" -o "$T/evil.html"
page "$T/evil.html"
python3 - "$T/evil.html" <<'PY' || fail 'what a stranger wrote is not told as it is'
import sys, report
p = report.page(sys.argv[1])
evil = "</script></style>--><img src=x onerror=alert(1)>\"'><svg onload=alert(2)>"
for word in ("scene", "device", "program", "--key", "value", "split", "reason"):
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
