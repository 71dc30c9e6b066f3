#!/bin/bash
# What kiln-export writes: dialects byte by byte, far doubles, orders, chosen chunks, raw planes; and when it has nothing to do.
. tests/e2e/lib.sh
command -v python3 >/dev/null || skip "no python3"
db=$KILN_TMP/x.db
reimport() { rm -rf "$db" "$db"-* "$KILN_TMP/export"; kiln import "$1" "$db" >/dev/null || fail "import $1"; }

# whole files come back, headers included: unknown columns, obj_info, two scales, filter_3D
for f in reversed_extra_sh1 mip_filter3d_sh0 2dgs_sh0 inria_sh1; do
    f=tests/data/ply/golden_ply_$f.ply
    reimport "$f"
    kiln export "$db" --layer source -w -o "$KILN_TMP/o.ply" >/dev/null || fail "export $f"
    cmp "$f" "$KILN_TMP/o.ply" || fail "$f came back different"
done

# doubles far from 0, more than one block of them
python3 - "$KILN_TMP/wide.ply" <<'P' || fail "wide.ply"
import random, struct, sys
random.seed(1)
with open(sys.argv[1], 'wb') as f:
    f.write(b'ply\nformat binary_little_endian 1.0\ncomment survey\nelement vertex 70000\nproperty double x\nproperty double y\n'
            b'property double z\nproperty uchar red\nproperty uchar green\nproperty uchar blue\nend_header\n')
    for i in range(70000):
        f.write(struct.pack('<3d3B', 5e5 + 50 * random.random(), 4e6 + 40 * random.random(), 10 * random.random(), i & 255, 7, 9))
P
reimport "$KILN_TMP/wide.ply"
kiln export "$db" --layer source -w -o "$KILN_TMP/o.ply" >/dev/null || fail "export"
cmp "$KILN_TMP/wide.ply" "$KILN_TMP/o.ply" || fail "far doubles came back different"
kiln export "$db" --layer source --keep-origin -w -o "$KILN_TMP/o.ply" >/dev/null || fail "export --keep-origin"
grep -aq '^property float x' "$KILN_TMP/o.ply" && grep -aq '^comment Origin: 500025 4000020 ' "$KILN_TMP/o.ply" || fail "--keep-origin: $(grep -a -m 6 '^[cp]' "$KILN_TMP/o.ply")"

# chunked and back: source order restores the file, baked order has the same rows
scene "$KILN_TMP/s" 20000 1 64x64
reimport "$KILN_TMP/s"
kiln knn "$db" >/dev/null && kiln chunk "$db" --layer source --max 1000 >/dev/null || fail "chunk"
kiln export "$db" >/dev/null || fail "export"
cmp "$KILN_TMP/s/scene.ply" "$KILN_TMP/export/scene.ply" || fail "source order does not restore the file"
kiln export "$db" --order baked -o "$KILN_TMP/b.ply" >/dev/null || fail "export --order baked"
kiln export "$db" --order baked --chunks '#0,#2' -o "$KILN_TMP/part.ply" >/dev/null || fail "export --chunks"
kiln export "$db" --format chunks -o "$KILN_TMP/raw" >/dev/null || fail "export chunks"
# An index may be a stranger's: of what it names, only files that are named by a hash go, and none behind a link.
mkdir "$KILN_TMP/outside" && touch "$KILN_TMP/outside/key" "$KILN_TMP/raw/notes.txt" "$KILN_TMP/raw/$(printf '%032d' 7).bin" &&
    ln -s ../outside "$KILN_TMP/raw/x" || fail "files for a stranger's index"
python3 - "$KILN_TMP/raw/index.json" <<'PY' || fail "a stranger's index"
import json, sys
index = json.load(open(sys.argv[1]))
planes = index['chunks'][0]['planes']
for i, name in enumerate(['x/key', 'notes.txt', '%032d.bin' % 7]):
    planes['extra/%d' % i] = dict(next(iter(planes.values())), file=name)
json.dump(index, open(sys.argv[1], 'w'))
PY
kiln export "$db" --format chunks -o "$KILN_TMP/raw" >/dev/null || fail "export chunks over a stranger's index"
[ -e "$KILN_TMP/outside/key" ] && [ -e "$KILN_TMP/raw/notes.txt" ] || fail "an index made kiln-export delete a file that is not its own"
[ ! -e "$KILN_TMP/raw/$(printf '%032d' 7).bin" ] || fail "a plane that is no longer needed stayed"
rm "$KILN_TMP/raw/notes.txt" "$KILN_TMP/raw/x"
python3 - "$KILN_TMP" <<'P' || fail "rows"
import array, json, sys
tmp = sys.argv[1]
def rows(name):
    b = open(tmp + '/' + name, 'rb').read()
    at = b.index(b'end_header\n') + 11
    n = int(b[b.index(b'element vertex ') + 15:].split(b'\n')[0])
    size = (len(b) - at) // n
    return [b[at + i * size:at + (i + 1) * size] for i in range(n)]
source, baked, part = rows('export/scene.ply'), rows('b.ply'), rows('part.ply')
assert source != baked and sorted(source) == sorted(baked)
index = json.load(open(tmp + '/raw/index.json'))
counts = [c['count'] for c in index['chunks']]
assert part == baked[:counts[0]] + baked[sum(counts[:2]):sum(counts[:3])]
at = 0
for c in index['chunks']:
    def plane(name, code):
        p = c['planes'][name]
        a = array.array(code, open(tmp + '/raw/' + p['file'], 'rb').read())
        assert len(a) == c['count'] * p['components'] and a.itemsize * len(a) == p['bytes']
        return a
    means, row = plane('means', 'f'), plane('source_row', 'I')
    for i in range(c['count']):
        for axis in range(3):
            x = array.array('f', baked[at + i][4 * axis:4 * axis + 4])[0]
            assert x == means[axis * c['count'] + i] and c['box_min'][axis] <= x <= c['box_max'][axis]
        assert source[row[i]] == baked[at + i]
    at += c['count']
assert at == len(source)
P

# due or not
said() { "$KILN_BIN/kiln-export" "$db" "$@" 2>&1; }
[[ $(said) == *"nothing to do"* ]] || fail "an export that is there was written again"
rm "$KILN_TMP/export/scene.ply"
[[ $(said) == *written* && -f $KILN_TMP/export/scene.ply ]] || fail "a missing export was not written again"
echo x >>"$KILN_TMP/export/scene.ply"
[[ $(said) == *"was changed since"* ]] || fail "a changed export was replaced unasked"
[[ $(said -w) == *written* ]] || fail "a changed export was not written again"
[[ $(said --format chunks) == *written* && $(said) == *"nothing to do"* ]] || fail "--format was not kept"
rm "$(find "$KILN_TMP/export/chunks" -name '*.bin' | head -n 1)"
[[ $(said) == *written* ]] || fail "a missing plane was not written again"
# what a killed export left goes, of a target without suffix too; others' and those of living processes stay
mkdir "$KILN_TMP/left"
(cd "$KILN_TMP/left" && touch scene.tmp.999999999 "scene.tmp.$$" other.tmp.999999999 scene.tmp.9x) || fail "leftovers"
kiln export "$db" --format ply -o "$KILN_TMP/left/scene" >/dev/null || fail "a target without suffix"
[ "$(cd "$KILN_TMP/left" && echo *)" = "other.tmp.999999999 scene scene.tmp.$$ scene.tmp.9x" ] || fail "leftovers: $(ls "$KILN_TMP/left")"
rm -r "$KILN_TMP/left"
# facts of the scene that writers read are part of what was written
for change in "unit = 'm'" "background_r = 0.5, background_g = 0.5, background_b = 0.5" "rows_read = rows_read + 1" "source_format = 'spz'"; do
    [[ $(said) == *"nothing to do"* ]] || fail "before $change: it was written again"
    python3 -c 'import sqlite3, sys; sqlite3.connect(sys.argv[1], isolation_level=None).execute("UPDATE scene SET " + sys.argv[2])' "$db" "$change" || fail "$change"
    [[ $(said) == *written* ]] || fail "$change: nothing was written again"
done
must 2 "$KILN_BIN/kiln-export" "$db" --chunks nowhere -o "$KILN_TMP/no.ply"
[ ! -e "$KILN_TMP/no.ply" ] || fail "a refused export left a file"
[ -z "$(find "$KILN_TMP" -name '*.tmp.*')" ] || fail "a temporary file was left"
