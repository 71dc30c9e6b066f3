#!/bin/bash
# What kiln-export selects, moves and joins: filters keep what a plain count keeps, in each layer; a scene moved on export is the
# one that is moved on import; several bakes in one file; another filter makes the export due, the same one does not.
. tests/e2e/lib.sh
command -v python3 >/dev/null || skip "no python3"
rows=8000
scene "$KILN_TMP/s" $rows 1 64x64
scene "$KILN_TMP/t" 3000 1 64x64 --seed 7
db=$KILN_TMP/a/x.db other=$KILN_TMP/b/x.db
for pair in "s $db" "t $other"; do
    set -- $pair
    kiln import "$KILN_TMP/$1" "$2" >/dev/null && kiln knn "$2" >/dev/null && kiln chunk "$2" --layer source --max 500 >/dev/null || fail "bake of $1"
done
to() { local out=$1; shift; kiln export "$db" -w -o "$KILN_TMP/$out" "$@" >/dev/null || fail "export $*"; }

cat >"$KILN_TMP/rows.py" <<'END'
import array, math, sys
def read(path):
    head, body = open(path, 'rb').read().split(b'end_header\n', 1)
    names = [l.split()[2].decode() for l in head.splitlines() if l.startswith(b'property')]
    flat = array.array('f')
    flat.frombytes(body)
    n = len(names)
    return names, [tuple(flat[i:i + n]) for i in range(0, len(flat), n)]
def sigmoid(v): return 1 / (1 + math.exp(-v))
tmp = sys.argv[1] + '/'
END

# ---- filters: each against a plain loop over the source's rows, of blocks and of chunks
python3 - "$KILN_TMP" >"$KILN_TMP/cases" <<'END' || fail "cases"
import sys
exec(open(sys.argv[1] + '/rows.py').read())
names, all = read(tmp + 's/scene.ply')
x, y, z, opacity, scale, red, rest = (names.index(c) for c in ('x', 'y', 'z', 'opacity', 'scale_1', 'f_dc_0', 'f_rest_17'))
edge = sorted(r[x] for r in all)[len(all) // 3]  # a border on which a row lies
median = sorted(r[rest] for r in all)[len(all) // 2]
cases = [
    ('--filter-box=%.17g,-,-1,-,0.5,' % edge, lambda i, r: r[x] >= edge and r[z] >= -1 and r[y] <= 0.5),
    ('--filter-box=-,-,-,%.17g,-,-' % edge, lambda i, r: r[x] <= edge),
    ('--filter-sphere=0.5,-0.25,0,1.5', lambda i, r: (r[x] - 0.5) ** 2 + (r[y] + 0.25) ** 2 + r[z] ** 2 < 2.25),
    ('--filter-value=x,gt,%.17g' % edge, lambda i, r: r[x] > edge),
    ('--filter-value=opacity,gte,0.5', lambda i, r: sigmoid(r[opacity]) >= 0.5),
    ('--filter-value=opacity_raw,lt,1', lambda i, r: r[opacity] < 1),
    ('--filter-value=scale_1,lte,0.02', lambda i, r: math.exp(r[scale]) <= 0.02),
    ('--filter-value=red,lt,0.5', lambda i, r: 0.5 + 0.28209479177387814 * r[red] < 0.5),
    ('--filter-value=f_dc_0_raw,gt,0.25', lambda i, r: r[red] > 0.25),
    ('--filter-value=f_rest_17,eq,%.17g' % median, lambda i, r: r[rest] == median),
    ('--filter-value=source_row,neq,7', lambda i, r: i != 7),
    ('--filter-value=nx,gt,0', lambda i, r: r[names.index('nx')] > 0),
    ('--filter-value=source_row,lt,6000 --filter-value=opacity,gt,0.3 --filter-sphere=0,0,0,2 --filter-box=-,-,-,0.5,-,- --filter-box=-0.5,-,-,-,-,-',
     lambda i, r: i < 6000 and sigmoid(r[opacity]) > 0.3 and r[x] ** 2 + r[y] ** 2 + r[z] ** 2 < 4 and -0.5 <= r[x] <= 0.5),
]
for k, (options, keep) in enumerate(cases):
    with open(tmp + 'case%d' % k, 'wb') as out:
        for i, r in enumerate(all):
            if keep(i, r): out.write(array.array('f', r).tobytes())
    print(k, options)
END
body() { python3 -c 'import sys; sys.stdout.buffer.write(open(sys.argv[1], "rb").read().split(b"end_header\n", 1)[1])' "$1"; }
while read -r k options; do
    want=$(($(stat -c %s "$KILN_TMP/case$k") / 248))
    if [ "$want" = 0 ]; then # of the generated scene all normals are 0
        must 3 "$KILN_BIN/kiln-export" "$db" -o "$KILN_TMP/none.ply" $options
        grep -q "there is no row to export: of the layer 'baked', --filter-value keeps nothing" "$KILN_TMP/err" && [ ! -e "$KILN_TMP/none.ply" ] || fail "nothing is kept: $(cat "$KILN_TMP/err")"
        continue
    fi
    [ "$want" -lt $rows ] || fail "case $k keeps all rows"
    for layer in baked source; do
        to f.ply --layer $layer $options
        body "$KILN_TMP/f.ply" | cmp - "$KILN_TMP/case$k" || fail "$options of $layer: other rows than a plain loop keeps ($want)"
    done
    to g.ply --order baked --threads 1 $options
    [ "$(body "$KILN_TMP/g.ply" | wc -c)" = $((want * 248)) ] || fail "$options in baked order: not $want rows"
done <"$KILN_TMP/cases"
to f.ply --filter-value opacity,gte,0.5 --threads 1 --workers 1
to g.ply --filter-value opacity,gte,0.5 --workers 3
cmp "$KILN_TMP/f.ply" "$KILN_TMP/g.ply" || fail "workers change the bytes"

# ---- wrong ones
must 2 "$KILN_BIN/kiln-export" "$db" -o "$KILN_TMP/no.ply" --filter-box 0,0,0,-1,1,1
grep -q "lower corner" "$KILN_TMP/err" || fail "says: $(cat "$KILN_TMP/err")"
must 2 "$KILN_BIN/kiln-export" "$db" -o "$KILN_TMP/no.ply" --filter-value confidence,gt,0
grep -q "no column 'confidence' here; there are x, y, z, opacity, scale_0.*f_rest_0 to f_rest_44, nx, ny, nz" "$KILN_TMP/err" || fail "says: $(cat "$KILN_TMP/err")"
must 2 "$KILN_BIN/kiln-export" "$db" -o "$KILN_TMP/no.ply" --filter-value opacity,gt,2
must 3 "$KILN_BIN/kiln-export" "$db" -o "$KILN_TMP/raw" --format chunks --filter-value opacity,gt,0.5
[ ! -e "$KILN_TMP/no.ply" ] && [ ! -e "$KILN_TMP/raw" ] || fail "a refused export left something"

# ---- degrees
to f.ply --sh-degree 1
to g.ply --sh-degree 1 --order baked
to h.ply --sh-degree 4
cmp "$KILN_TMP/h.ply" "$KILN_TMP/s/scene.ply" || fail "a degree above the scene's changes something"
python3 - "$KILN_TMP" <<'END' || fail "degrees"
import sys
exec(open(sys.argv[1] + '/rows.py').read())
names, all = read(tmp + 's/scene.ply')
cut, some = read(tmp + 'f.ply')
assert len(some) == len(all) and sum(c.startswith('f_rest') for c in cut) == 9
for k in range(9): # of each colour the first three of fifteen
    was, now = names.index('f_rest_%d' % (k // 3 * 15 + k % 3)), cut.index('f_rest_%d' % k)
    assert [r[was] for r in all] == [r[now] for r in some], k
assert sorted(some) == sorted(read(tmp + 'g.ply')[1])
END

# ---- moves
for move in '--scale 2 --rotate 10,20,30 --translate 1,2,3' '--rotate 90,0,-180' '--scale 0.001' '--translate 0,0,500' '--translate 4e5,5e6,0'; do
    rm -rf "$KILN_TMP/m"
    kiln import "$KILN_TMP/s" "$KILN_TMP/m/x.db" $move >/dev/null || fail "import $move"
    kiln export "$KILN_TMP/m/x.db" --layer source -w -o "$KILN_TMP/m.ply" >/dev/null || fail "export of what import moved"
    for layer in baked source; do
        to f.ply --layer $layer $move
        if [ "$move" = '--translate 4e5,5e6,0' ]; then # doubles, measured from two origins
            grep -aq '^property double x' "$KILN_TMP/f.ply" || fail "$move: coordinates are floats"
            python3 - "$KILN_TMP" <<'END' || fail "$move of $layer"
import struct, sys
def read(path):
    head, body = open(path, 'rb').read().split(b'end_header\n', 1)
    return list(struct.iter_unpack('<3d59f', body))
ours, theirs = read(sys.argv[1] + '/f.ply'), read(sys.argv[1] + '/m.ply')
assert len(ours) == len(theirs) == 8000
for a, b in zip(ours, theirs):
    assert a[3:] == b[3:] and max(abs(p - q) for p, q in zip(a[:3], b[:3])) <= 1e-5, (a[:3], b[:3]) # floats of 64 from the origins
END
        else
            cmp "$KILN_TMP/f.ply" "$KILN_TMP/m.ply" || fail "$move of $layer: not what import makes of it"
        fi
    done
done
must 2 "$KILN_BIN/kiln-export" "$db" -o "$KILN_TMP/no.ply" --scale 0
# the axis that points up turns along ("y" only names the vertical axis, of which -y is up), and every format has the bytes that it has of the scene that import moved
turn='--rotate 90,0,0 --scale 2'
sed 's/^element vertex/comment Vertical axis: y\n&/' "$KILN_TMP/t/scene.ply" >"$KILN_TMP/up.ply"
kiln import "$KILN_TMP/up.ply" "$KILN_TMP/u1.db" >/dev/null && kiln import "$KILN_TMP/up.ply" "$KILN_TMP/u2.db" $turn >/dev/null || fail "import"
mkdir "$KILN_TMP/u1" "$KILN_TMP/u2"
# (but html's: its cameras are made by import here, around the octree of the scene that it read; e2e/export_html moves given ones)
formats=$("$KILN_BIN/kiln-export" --list-formats | awk '$1 != "chunks" && $1 != "html" && $3 != "levels" { printf "%s%s", n++ ? "," : "", $1 }')
kiln export "$KILN_TMP/u1.db" --layer source $turn --filter-value opacity,gte,0.3 --format "$formats" -o "$KILN_TMP/u1/" >/dev/null || fail "export to all formats"
kiln export "$KILN_TMP/u2.db" --layer source --filter-value opacity,gte,0.3 --format "$formats" -o "$KILN_TMP/u2/" >/dev/null || fail "export to all formats"
grep -aq '^comment Vertical axis: -z$' "$KILN_TMP/u1/scene.ply" || fail "up is still y: $(grep -a '^comment' "$KILN_TMP/u1/scene.ply")"
diff -r "$KILN_TMP/u1" "$KILN_TMP/u2" >&2 || fail "a format is not what it is of the moved scene"
[ "$(ls "$KILN_TMP/u1" | wc -l)" -ge 8 ] || fail "formats are missing: $formats"
# no chunk can have a row, or the survey finds none
for box in 1e6,1e6,1e6,1e7,1e7,1e7 0,0,0,0,0,0; do
    must 3 "$KILN_BIN/kiln-export" "$db" -o "$KILN_TMP/none.ply" --filter-box=$box --filter-value=opacity,gt,0.1
    grep -q "of the layer 'baked', --filter-box, --filter-value keeps nothing" "$KILN_TMP/err" || fail "$box: $(cat "$KILN_TMP/err")"
done
to f.ply --filter-value=source_row,eq,7
must 0 "$KILN_BIN/kiln-export" "$db" -w -o "$KILN_TMP/f.ply" --filter-value=source_row,eq,7 --force
grep -q ' 1 row of the layer' "$KILN_TMP/err" || fail "one row: $(cat "$KILN_TMP/err")"
# filters look at the rows before they are moved
to f.ply --filter-box=-,-,-,0,-,- --translate 100,0,0
to g.ply --filter-box=-,-,-,0,-,-
[ "$(body "$KILN_TMP/f.ply" | wc -c)" = "$(body "$KILN_TMP/g.ply" | wc -c)" ] || fail "filters look at moved rows"

# ---- several bakes
to ab.ply --add "$other"
cmp <(body "$KILN_TMP/ab.ply") <(body "$KILN_TMP/s/scene.ply"; body "$KILN_TMP/t/scene.ply") || fail "two bakes are not their rows one after the other"
[ ! -e "$other.lock" ] || fail "a bake that is only read was locked"
to ba.ply --add "$other" --order baked --workers 1
to ab2.ply --add "$other" --order baked --workers 3
cmp "$KILN_TMP/ba.ply" "$KILN_TMP/ab2.ply" || fail "workers change the bytes of several bakes"
to f.ply --add "$other" --filter-value opacity,gte,0.5 --scale 3 --chunks '/**'
kiln import "$KILN_TMP/s" --add "$KILN_TMP/t/scene.ply" --scale 3 "$KILN_TMP/j.db" >/dev/null || fail "import --add"
kiln export "$KILN_TMP/j.db" --layer source --filter-value opacity,gte,0.5 -w -o "$KILN_TMP/g.ply" >/dev/null || fail "export of joined files"
cmp <(body "$KILN_TMP/f.ply") <(body "$KILN_TMP/g.ply") || fail "bakes joined on export are not files joined on import"
must 3 "$KILN_BIN/kiln-export" "$db" --add "$KILN_TMP/nowhere.db" -o "$KILN_TMP/no.ply"
must 4 "$KILN_BIN/kiln-export" "$db" --add "$KILN_TMP/j.db" -o "$KILN_TMP/no.ply"
grep -q "chunk has not run for '$KILN_TMP/j.db'" "$KILN_TMP/err" || fail "says: $(cat "$KILN_TMP/err")"

# other columns, other degrees, other origins
python3 - "$KILN_TMP" <<'END' || fail "sources"
import array, random, sys
exec(open(sys.argv[1] + '/rows.py').read())
names, all = read(tmp + 't/scene.ply')
random.seed(3)
def write(path, names, rows, far):
    kinds = ['double' if far and c in 'xyz' else 'float' for c in names]
    with open(path, 'wb') as out:
        out.write(('ply\nformat binary_little_endian 1.0\nelement vertex %d\n' % len(rows) +
                   ''.join('property %s %s\n' % p for p in zip(kinds, names)) + 'end_header\n').encode())
        for r in rows:
            for kind, v in zip(kinds, r): out.write(array.array(kind[0], [v]).tobytes())
low = [c for c in names if not c.startswith('f_rest')]
write(tmp + 'p.ply', names + ['confidence', 'mine'], [r + (0.5, 1) for r in all], False)
write(tmp + 'q.ply', ['label', 'confidence'] + low, [(3, i) + tuple(v + 1e7 * (c == 'y') for c, v in zip(names, r) if c in low) for i, r in enumerate(all)], True)
END
for f in p q; do kiln import "$KILN_TMP/$f.ply" "$KILN_TMP/$f.db" >/dev/null || fail "import $f"; done
must 0 "$KILN_BIN/kiln-export" "$KILN_TMP/p.db" --layer source --add "$KILN_TMP/q.db" -o "$KILN_TMP/pq.ply"
for c in mine label; do grep -q "column '$c' of the source is not in all bakes and left out" "$KILN_TMP/err" || fail "'$c' is not named: $(cat "$KILN_TMP/err")"; done
! grep -q "column '[xyz]'" "$KILN_TMP/err" || fail "coordinates are said to be left out: $(cat "$KILN_TMP/err")"
python3 - "$KILN_TMP" <<'END' || fail "bakes with other columns, degrees and origins"
import struct, sys
exec(open(sys.argv[1] + '/rows.py').read())
names, all = read(tmp + 't/scene.ply')
head, body = open(tmp + 'pq.ply', 'rb').read().split(b'end_header\n', 1)
columns = [l.split()[1:] for l in head.decode().splitlines() if l.startswith('property')]
both = [c for _, c in columns]
assert 'confidence' in both and 'mine' not in both and 'label' not in both, both
assert [k for k, c in columns if c in 'xyz'] == ['double'] * 3
rows = list(struct.iter_unpack('<' + ''.join(k[0] for k, _ in columns), body))
n = len(all)
assert len(rows) == 2 * n
at = {c: both.index(c) for c in both}
for i, r in enumerate(all):
    a, b = rows[i], rows[n + i]
    assert (a[at['confidence']], b[at['confidence']]) == (0.5, i)
    for c, v in zip(names, r):
        if c in 'xyz':
            assert abs(a[at[c]] - v) <= 1 and abs(b[at[c]] - v - 1e7 * (c == 'y')) <= 2e-6, (c, a[at[c]], b[at[c]], v)
        else:
            assert a[at[c]] == v and b[at[c]] == (0 if c.startswith('f_rest') else v), (c, i)
END

# a filter on a column of the source's own; all columns lose the same rows
kiln export "$KILN_TMP/q.db" --layer source --filter-value confidence,gte,2990 --filter-value label,eq,3 --filter-value confidence,neq,2995 -w -o "$KILN_TMP/f.ply" >/dev/null ||
    fail "a filter of the source's own column"
python3 - "$KILN_TMP" <<'END' || fail "a filter of the source's own column"
import sys
tmp = sys.argv[1] + '/'
def read(path):
    head, body = open(path, 'rb').read().split(b'end_header\n', 1)
    lines = head.decode().splitlines()
    n = int([l for l in lines if l.startswith('element vertex')][0].split()[2])
    return [l for l in lines if l.startswith('property')], [body[i * len(body) // n:(i + 1) * len(body) // n] for i in range(n)]
columns, all = read(tmp + 'q.ply')
same, some = read(tmp + 'f.ply')
assert same == columns and some == all[2990:2995] + all[2996:], len(some)
END

# ---- when it has something to do
said() { "$KILN_BIN/kiln-export" "$db" "$@" 2>&1; }
[[ $(said) == *written* && $(said) == *"nothing to do"* ]] || fail "an export is not remembered"
[[ $(said --filter-sphere 0,0,0,1) == *written* && $(said) == *"nothing to do"* ]] || fail "a filter is not stored"
[[ $(said --filter-sphere 0,0,0,1) == *"nothing to do"* ]] || fail "the same filter is another one"
[[ $(said --filter-sphere 0,0,0,1.5) == *written* && $(said --filter-sphere '') == *written* ]] || fail "another filter has nothing to do"
cmp "$KILN_TMP/s/scene.ply" "$KILN_TMP/a/export/scene.ply" || fail "a filter that is taken back left something"
(cd "$KILN_TMP/b" && "$KILN_BIN/kiln-export" ../a/x.db --add x.db --quiet) || fail "--add by a relative path"
[[ $(said) == *"nothing to do"* ]] || fail "--add is not stored by its absolute path"
kiln chunk "$other" --max 300 >/dev/null || fail "chunk"
[[ $(said) == *written* && $(said) == *"nothing to do"* ]] || fail "another bake of --add changed, and nothing was done"
