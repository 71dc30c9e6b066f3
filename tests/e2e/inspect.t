#!/usr/bin/env bash
# kiln-verify names what is damaged and ends with 74; kiln-info says what is there. Neither changes the manifest.
. tests/e2e/lib.sh
cd "$KILN_TMP" || exit 1
scene scene 2000 9 96x64 # the 1st and the 9th of the sorted names are the test split
bake scene m.db --max 512
cp m.db again.db
must 0 kiln tiles again.db --near 0.3 --json --devices cpu
cp out tiles.json
before=$(cksum m.db)

# verify: says how much it checked
must 0 "$KILN_BIN/kiln-verify" m.db
grep -qE '^m\.db: checked [0-9.]+ [KM]iB in [0-9]+ blobs, .* 9 tile tables, 9 cameras, 9 images, .*: all is well$' out || fail "verify says $(cat out)"
must 0 "$KILN_BIN/kiln-verify" --digest m.db
[ "$(cut -d' ' -f1 out | sort | uniq -c | tr -s ' \n' ' ')" = ' 9 image 4 layer 9 table ' ] || fail "digest lines: $(cat out)"
LC_ALL=C sort -c out || fail 'digest lines are not sorted'
grep -vqE '^(image|layer|table) [^ ]+ [0-9a-f]{32}$' out && fail 'a digest line is not three words'

# info: a table for people, JSON for machines, of the same content
must 0 "$KILN_BIN/kiln-info" m.db
for stage in import knn prune chunk tiles render; do grep -qE "^$stage +fresh " out || fail "info does not say that $stage is fresh"; done
must 0 "$KILN_BIN/kiln-info" --json m.db
if command -v python3 >/dev/null; then
    python3 - out <<'PY' || fail 'info --json'
import json, sys
d = json.load(open(sys.argv[1]))
assert d["version"] == 1
assert {s["name"]: s["state"] for s in d["stages"]}["render"] == "fresh"
assert d["counts"]["rows_read"] == 2000 and d["counts"]["cameras"] == 9 and d["counts"]["chunks"] > 1
assert d["counts"]["source"] - d["counts"]["pruned_away"] == d["counts"]["pruned"] == d["counts"]["baked"]
assert d["profile"]["name"] == "inria" and len(d["cameras"]) == 9
assert sorted(c["name"] for c in d["cameras"]) == [c["name"] for c in d["cameras"]]
assert all(c["visible"] > 0 and c["pairs"] > 0 and c["split"] in ("train", "test") for c in d["cameras"])
tiles = json.load(open("tiles.json"))
assert [(l["what"], l["units"]) for l in tiles["lists"]] == [("counting pairs", 9), ("tile tables", 18)], tiles["lists"]
assert all(0 < l["busy_s"] and 0 < l["wall_s"] and 0 < l["store_s"] and l["stored_bytes"] > 0 for l in tiles["lists"])
assert d["test"]["views"] == 0 and d["test"]["psnr"] is None  # there are no photos
assert d["fast"] is None and not any(c["fast"] for c in d["cameras"])
PY
    # and of which pictures are fast: no GPU draws any here, so rows and counters are made theirs
    cp m.db fast.db
    python3 - fast.db <<'PY' || fail 'fast.db'
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
db.execute("UPDATE image SET device_kind = 'cuda-fast' WHERE camera <> 'cam0'")
keys = [k for k, in db.execute("SELECT key FROM image WHERE device_kind = 'cuda-fast' ORDER BY camera")]
for key, fast_db in zip(keys, ['"inf"', "64.26", "71.5"]):
    n = db.execute("UPDATE unit SET counters = json_set(counters, '$.fast_db', json(?)) WHERE key = ?", (fast_db, key)).rowcount
    assert n == 1, n
db.commit()
PY
    must 0 "$KILN_BIN/kiln-info" fast.db
    grep -qx '8 pictures drawn with --fast, not exactly; 3 measured: at least 64.3 dB from the exact ones' out || fail "info of fast pictures: $(cat out)"
    must 0 "$KILN_BIN/kiln-info" --json fast.db
    python3 - out <<'PY' || fail 'info --json of fast pictures'
import json, sys
d = json.load(open(sys.argv[1]))
assert d["fast"] == {"images": 8, "measured": 3, "least_db": 64.26}, d["fast"]
assert {c["name"] for c in d["cameras"] if not c["fast"]} == {"cam0"}, d["cameras"]
PY
    rm fast.db
    # times as far apart as integers go, whose difference is in no 64-bit integer: refused, as nothing ran before 1970
    cp m.db times.db
    python3 - times.db <<'PY' || fail 'times.db'
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
db.execute("UPDATE run SET start_ns = ?, stop_ns = ?", (-2**63, 2**63 - 1))
db.execute("UPDATE stage SET finished_ns = ?", (-2**63,))
db.commit()
PY
    must 3 "$KILN_BIN/kiln-info" times.db
    grep -q 'was before 1970' err || fail "it does not say what is wrong: $(cat err)"
    # the largest times that a row may have
    python3 - times.db <<'PY' || fail 'times.db'
import sqlite3, sys
db = sqlite3.connect(sys.argv[1])
db.execute("UPDATE run SET start_ns = 0, stop_ns = ?", (2**63 - 1,))
db.execute("UPDATE stage SET finished_ns = ?", (2**63 - 1,))
db.commit()
PY
    must 0 "$KILN_BIN/kiln-info" --json times.db
    python3 - out <<'PY' || fail 'info --json of extreme times'
import json, sys
d = json.load(open(sys.argv[1]))
assert all(abs(s["seconds"] - 2**63 * 1e-9) < 1 for s in d["stages"] if s["name"] != "lod"), [s["seconds"] for s in d["stages"]]
PY
    rm times.db
fi
[ "$before" = "$(cksum m.db)" ] || fail 'looking changed the manifest'
[ -z "$(ls m.db-* m.db.lock 2>/dev/null)" ] || fail "looking left $(ls m.db-* m.db.lock 2>/dev/null)"

# damage: 64 bytes in the middle of each of some places
pages=$(($(stat -c %s m.db) / 65536))
for page in 3 $((pages / 2)) $((pages - 2)); do
    cp m.db bad.db
    head -c 64 /dev/zero | tr '\0' '\252' | dd of=bad.db bs=1 seek=$((page * 65536 + 30000)) conv=notrunc status=none
    cmp -s m.db bad.db && continue
    "$KILN_BIN/kiln-verify" bad.db >out 2>err
    code=$?
    [ $code -eq 74 ] || [ $code -eq 0 ] || fail "page $page: exit $code"
    [ $code -eq 0 ] || { grep -q 'damaged' err && found=1; }
done
[ -n "${found:-}" ] || fail 'no damage was found'

# a bake that nothing is left of is whole: its empty arrays share one blob, whatever their elements
kiln import scene none.db >/dev/null || fail 'import'
kiln knn none.db >/dev/null || fail 'knn'
kiln prune none.db --crop-box 9e5,9e5,9e5,9e6,9e6,9e6 >/dev/null || fail 'prune'
for stage in chunk tiles render; do kiln $stage none.db >/dev/null || fail "$stage of nothing"; done
must 0 "$KILN_BIN/kiln-verify" none.db
rm none.db

# what is no manifest
must 3 "$KILN_BIN/kiln-verify" none.db
must 3 "$KILN_BIN/kiln-info" scene/cameras.json
grep -q 'not a manifest' err || fail 'no sentence for a file that is no manifest'
must 2 "$KILN_BIN/kiln-info"
exit 0
