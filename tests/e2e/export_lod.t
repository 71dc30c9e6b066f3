#!/bin/bash
# Streamed SOG: valid by the specification (tests/validators/lod_meta.py), each level has its rows once and the finest is what is in the
# bake, the bytes are the same for any threads, workers and --ram, and come again only where something changed; the validator finds faults.
. tests/e2e/lib.sh
valid() { python3 tests/validators/lod_meta.py "$1"; }
out=$KILN_TMP
scene "$out/s" 4000 4 32x24
kiln import "$out/s" "$out/b.db" >/dev/null && kiln knn "$out/b.db" >/dev/null && kiln chunk "$out/b.db" --layer source --max 600 >/dev/null || fail 'chunk'
must 4 kiln export "$out/b.db" --format lod -o "$out/t/"
grep -q 'kiln-lod' "$out/err" || fail 'the refusal does not name kiln-lod'
[ ! -e "$out/t" ] || fail 'a refused export left something'
kiln lod "$out/b.db" --levels 3 --coarsest 200 >/dev/null || fail 'lod'
for bad in '--layer source' '--chunks #0' '--filter-box -1,-1,-1,1,1,1'; do
    # shellcheck disable=SC2086
    must 2 kiln export "$out/b.db" --format lod $bad -o "$out/t/"
done
must 0 kiln export "$out/b.db" --format lod --sh-degree 1 -o "$out/t/" --threads 1
facts=$(valid "$out/t/lod-meta.json") || fail "not valid: $facts"
rows=$(sqlite3 "$out/b.db" "select sum(count) from chunk join stage_output using (layer) where role = 'baked'")
[[ $facts = *"\"counts\": [$rows, "* ]] || fail "level 0 has not $rows rows: $facts"
[[ $facts =~ \"levels\":\ ([0-9]+) ]] && levels=${BASH_REMATCH[1]} && [ "$levels" -ge 5 ] || fail "too few levels: $facts"
errors=$(sqlite3 "$out/b.db" 'select count(*) > 0 from level_error')
[[ $facts = *"\"errors\": $([ "$errors" = 1 ] && echo true || echo false)"* ]] || fail "errors of $errors: $facts"
for how in '--threads 2' '--workers 3 --ram 300M'; do
    rm -rf "$out/u"
    # shellcheck disable=SC2086
    must 0 kiln export "$out/b.db" --format lod --sh-degree 1 -o "$out/u/" $how
    diff -r "$out/t" "$out/u" >&2 || fail "other bytes with $how"
done
must 5 kiln export "$out/b.db" --format lod --sh-degree 0 -o "$out/w/" --ram 8M
[[ $(cat "$out/err") =~ --ram\ ([0-9]+[MG]) ]] || fail "the refusal of --ram names no cap: $(cat "$out/err")"
must 0 kiln export "$out/b.db" --format lod --sh-degree 0 -o "$out/w/" --ram "${BASH_REMATCH[1]}"

# The file of level 0 is what the SOG writer makes of the same rows, byte by byte.
must 0 kiln export "$out/b.db" --format sog-folder --sh-degree 1 -o "$out/sog/"
diff -r "$out/sog" "$out/t/0_0" >&2 || fail 'level 0 is not the SOG of the bake'

# What importers find: levels whole, the finest within half a step of its code.
for k in 0 $((levels - 1)); do
    kiln import "$out/t/lod-meta.json" "$out/l.db" --lod $k --force >/dev/null || fail "import of level $k"
    got=$(sqlite3 "$out/l.db" "select sum(count) from chunk join stage_output using (layer) where role = 'source'")
    [[ $facts =~ \"counts\":\ \[([^]]*)\] ]]
    [ "$got" = "$(echo "${BASH_REMATCH[1]}" | cut -d, -f$((k + 1)) | tr -d ' ')" ] || fail "level $k has $got rows"
    must 0 kiln export "$out/l.db" --layer source -o "$out/l$k.ply"
done
must 0 kiln export "$out/b.db" --order baked -o "$out/b.ply"
python3 - "$out/t/lod-meta.json" "$out/l0.ply" "$out/l$((levels - 1)).ply" "$out/b.ply" <<'PY' || fail 'levels are not where they should be'
import json, struct, sys
def ply(path):
    head, body = open(path, 'rb').read().split(b'end_header\n', 1)
    names = [l.split()[-1].decode() for l in head.split(b'\n') if l.startswith(b'property float')]
    return [dict(zip(names, r)) for r in struct.iter_unpack('<%df' % len(names), body)]
got, want = ply(sys.argv[2]), ply(sys.argv[4])
assert len(got) == len(want), (len(got), len(want))
for g, w in zip(got, want):
    for name in 'xyz': assert abs(g[name] - w[name]) < 2e-3 * (1 + abs(w[name])), (name, g[name], w[name])
    assert abs(g['f_dc_0'] - w['f_dc_0']) < 0.1, (g['f_dc_0'], w['f_dc_0'])
# The rows of a leaf lie in its bound: of the finest level as of the coarsest.
meta = json.load(open(sys.argv[1]))
leaves, todo = [], [meta['tree']]
while todo:
    n = todo.pop()
    leaves += [n] if 'lods' in n else []
    todo += n.get('children', [])
for k, rows in ((0, got), (meta['lodLevels'] - 1, ply(sys.argv[3]))):
    files = sorted({l['lods'][str(k)]['file'] for l in leaves if str(k) in l['lods']})
    assert len(files) == 1, files
    for l in leaves:
        part = l['lods'].get(str(k), {'offset': 0, 'count': 0})
        for r in rows[part['offset']:part['offset'] + part['count']]:
            for a, name in enumerate('xyz'):
                assert l['bound']['min'][a] - 2e-3 * (1 + abs(r[name])) <= r[name] <= l['bound']['max'][a] + 2e-3 * (1 + abs(r[name])), (k, l['bound'], r)
PY

# Remembered beside the bake; a file that is gone is written again, a stranger's file in a folder of ours is not removed.
must 0 "$KILN_BIN/kiln-export" "$out/b.db" --format lod --sh-degree 0
must 0 "$KILN_BIN/kiln-export" "$out/b.db" --format lod --sh-degree 0
grep -q 'nothing to do' "$out/err" || fail 'written twice'
rm "$out/export/lod/1_0/quats.webp"
must 0 "$KILN_BIN/kiln-export" "$out/b.db" --format lod --sh-degree 0
[ -s "$out/export/lod/1_0/quats.webp" ] || fail 'a file that was gone is not there again'
echo mine >"$out/t/1_0/notes.txt"
must 2 kiln export "$out/b.db" --format lod -o "$out/t/"
[ "$(cat "$out/t/1_0/notes.txt")" = mine ] || fail "a stranger's file is gone"
rm "$out/t/1_0/notes.txt"

# What a fault costs: each of these is told.
python3 - "$out/t" <<'PY' || fail 'cannot break a set'
import copy, json, sys
t = json.load(open(sys.argv[1] + '/lod-meta.json'))
def save(name, change):
    c = copy.deepcopy(t)
    change(c)
    json.dump(c, open(f'{sys.argv[1]}/{name}.json', 'w'))
def leaf(c):
    n = c['tree']
    while 'children' in n: n = n['children'][0]
    return n
save('count', lambda c: c['counts'].__setitem__(0, c['counts'][0] + 1))
save('offset', lambda c: leaf(c)['lods']['0'].__setitem__('offset', 5))
save('file', lambda c: leaf(c)['lods']['0'].__setitem__('file', 99))
save('missing', lambda c: c['filenames'].__setitem__(0, '9_9/meta.json'))
save('bound', lambda c: leaf(c)['bound']['min'].__setitem__(0, -1e9))
save('child', lambda c: c['tree']['children'].pop())
save('away', lambda c: c['filenames'].__setitem__(0, '../meta.json'))
PY
for broken in count offset file missing bound child away; do
    valid "$out/t/$broken.json" 2>/dev/null && fail "the validator does not see: $broken"
done
exit 0
