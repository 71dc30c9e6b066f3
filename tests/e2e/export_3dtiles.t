#!/bin/bash
# 3D Tiles: valid by the specification (tests/validators/tileset.py), the leaves hold every Gaussian where it was, the bytes are the same
# for any threads, workers and --ram; --geo puts the scene on the globe; without levels there is a sentence; the validator finds faults.
. tests/e2e/lib.sh
valid() { python3 tests/validators/tileset.py "$1"; }
out=$KILN_TMP
scene "$out/s" 6000 4 32x24
kiln import "$out/s" "$out/b.db" >/dev/null && kiln knn "$out/b.db" >/dev/null && kiln chunk "$out/b.db" --layer source --max 900 >/dev/null || fail 'chunk'
must 4 kiln export "$out/b.db" --format 3dtiles -o "$out/t"
grep -q 'kiln-lod' "$out/err" || fail 'the refusal does not name kiln-lod'
[ ! -e "$out/t" ] || fail 'a refused export left something'
kiln lod "$out/b.db" --levels 3 --coarsest 300 >/dev/null || fail 'lod'
must 0 kiln export "$out/b.db" --format 3dtiles -o "$out/t" --threads 1
facts=$(valid "$out/t/tileset.json") || fail "not valid: $facts"
rows=$(sqlite3 "$out/b.db" "select sum(count) from chunk join stage_output using (layer) where role = 'baked'")
[[ $facts = *"\"leaf_rows\": $rows,"* ]] || fail "not $rows rows in the leaves: $facts"
[[ $facts =~ \"depth\":\ ([0-9]+) ]] && [ "${BASH_REMATCH[1]}" -ge 6 ] || fail "too few tiles above each other: $facts"
[[ $facts =~ \"root_rows\":\ ([0-9]+) ]] && [ "${BASH_REMATCH[1]}" -le 300 ] || fail "the root is too large: $facts"
for how in '--threads 2' '--workers 3' '--ram 200M'; do
    rm -rf "$out/u"
    # shellcheck disable=SC2086
    must 0 kiln export "$out/b.db" --format 3dtiles -o "$out/u" $how
    diff -r "$out/t" "$out/u" >&2 || fail "other bytes with $how"
done

# Errors are of the scene's size, whatever of it was measured, and differ from level to level.
python3 - "$out/t/tileset.json" <<'PY' || fail 'errors out of all proportion'
import json, sys
t, seen = json.load(open(sys.argv[1]))['root'], []
while t.get('children'): seen, box, t = seen + [t['geometricError']], t['boundingVolume']['box'], t['children'][0]
print(seen, box)
assert max(box[3], box[7], box[11]) > seen[0] and seen[-1] > 0 and len(set(seen)) > 2, (seen, box)
PY

# A leaf is a glTF like any: what is read from it is its chunk, within a step of SPZ, with y and z turned: right, up, back.
chunk=$(sqlite3 "$out/b.db" "select chunk.name from chunk join stage_output using (layer) where role = 'baked' order by ordinal limit 1")
file=${chunk#/} && file=$out/t/${file//\//_}_L0.glb
kiln import "$file" "$out/leaf.db" --frame as-is >/dev/null || fail 'import of a leaf'
must 0 kiln export "$out/leaf.db" --layer source -o "$out/leaf.ply"
must 0 kiln export "$out/b.db" --chunks "$chunk" --order baked -o "$out/chunk.ply"
python3 - "$out/leaf.ply" "$out/chunk.ply" <<'PY' || fail 'a leaf is not its chunk'
import struct, sys
def ply(path):
    head, body = open(path, 'rb').read().split(b'end_header\n', 1)
    names = [l.split()[-1].decode() for l in head.split(b'\n') if l.startswith(b'property float')]
    return [dict(zip(names, r)) for r in struct.iter_unpack('<%df' % len(names), body)]
got, want = ply(sys.argv[1]), ply(sys.argv[2])
assert len(got) == len(want), (len(got), len(want))
for g, w in zip(got, want):
    for name, sign in (('x', 1), ('y', -1), ('z', -1)): assert abs(g[name] - sign * w[name]) < 2e-3, (name, g[name], w[name])
    assert abs(g['scale_0'] - max(w['scale_0'], -10)) < 0.04, (g['scale_0'], w['scale_0'])
PY

rm -rf "$out/u"
must 0 kiln export "$out/b.db" --format 3dtiles --geo 47.37,8.54,410 -o "$out/u"
valid "$out/u/tileset.json" >/dev/null || fail 'not valid with --geo'
python3 -c 'import json, sys; t = json.load(open(sys.argv[1]))["root"]["transform"]; assert abs(t[12] ** 2 + t[13] ** 2 + t[14] ** 2 - 6.367e6 ** 2) < 1e12, t' \
    "$out/u/tileset.json" || fail '--geo is not on the ground'
for bad in 91,0,0 1,2 1,2,x 1,2,3,4; do must 2 kiln export "$out/b.db" --format 3dtiles --geo $bad -o "$out/w"; done

# A place is refused where no format has one, by the name of what was asked for; a stored one does not keep a PLY from being written.
must 2 kiln export "$out/b.db" --format ply --geo 47.37,8.54,410
grep -q 'format is ply' "$out/err" || fail 'the refusal of --geo does not name the format'
must 2 kiln export "$out/b.db" --format ply,spz --geo 47.37,8.54,410
grep -q 'format is ply,spz' "$out/err" || fail 'the refusal of --geo does not name both formats'
must 2 kiln export "$out/b.db" --geo 47.37,8.54,410 -o "$out/w.glb"
grep -q 'format is glb' "$out/err" && [ ! -e "$out/w.glb" ] || fail 'the refusal of --geo does not name the format of the suffix'
cp "$out/b.db" "$out/placed.db"
must 0 kiln export "$out/placed.db" --format ply,3dtiles --geo 47.37,8.54,410
must 0 "$KILN_BIN/kiln-export" "$out/placed.db" --format ply
grep -q 'stored --geo' "$out/err" || fail 'nothing said of the stored --geo'
rm -rf "$out/export"

# Axes are never the PLY's: it says so. The stored place is taken back.
rm -rf "$out/u"
must 0 "$KILN_BIN/kiln-export" "$out/b.db" --format 3dtiles --frame as-is --geo none -o "$out/u"
grep -q 'frame as-is' "$out/err" && diff -r "$out/t" "$out/u" >&2 || fail '--frame as-is'

# A stranger's names reach neither files nor JSON.
cp "$out/b.db" "$out/bad.db" && sqlite3 "$out/bad.db" "update chunk set name = replace(name, '/0', '/\"0'), parent = replace(parent, '/0', '/\"0')"
must 3 kiln export "$out/bad.db" --format 3dtiles -o "$out/w"
[ ! -e "$out/w" ] || fail 'a refused export left something'

# What a fault costs: each of these is told.
python3 - "$out/t/tileset.json" "$out/t" <<'PY' || fail 'cannot break a tileset'
import copy, json, sys
t = json.load(open(sys.argv[1]))
def save(name, change):
    c = copy.deepcopy(t)
    change(c)
    json.dump(c, open(f'{sys.argv[2]}/{name}.json', 'w'))
def leaf(c):
    at = c['root']
    while 'children' in at: at = at['children'][0]
    return at
save('larger', lambda c: c['root']['children'][0].update(geometricError=c['root']['geometricError'] + 1))
save('rest', lambda c: leaf(c).update(geometricError=1))
save('gone', lambda c: leaf(c)['content'].update(uri='9_L0.glb'))
save('box', lambda c: leaf(c)['boundingVolume']['box'].__setitem__(3, 1e-4))
save('old', lambda c: c['asset'].update(version='1.0'))
PY
for fault in larger rest gone box old; do valid "$out/t/$fault.json" >/dev/null && fail "the validator does not see: $fault"; done
exit 0
