#!/bin/bash
# GLB and .ksplat: what is read back from them is what was baked, within half a step of each level; the bytes are the same for any
# threads, workers and --ram; what was read from them is written again as it was; --frame and the antialiased flag come back.
. tests/e2e/lib.sh
cd "$KILN_TMP" || exit 1
scene s 9000 1 32x24
kiln import s b.db >/dev/null || fail 'import'
kiln knn b.db >/dev/null && kiln prune b.db >/dev/null && kiln chunk b.db --max 1500 >/dev/null || fail 'chunk'
must 0 kiln export b.db --order baked -o b.ply

for format in glb ksplat ksplat0 ksplat2; do
    suffix=${format%[0-9]}
    must 0 kiln export b.db --format $format -w -o one.$suffix --threads 1
    for how in '--threads 2' '--workers 3' '--ram 200M'; do
        # shellcheck disable=SC2086
        must 0 kiln export b.db --format $format -w -o other.$suffix $how
        cmp one.$suffix other.$suffix || fail "$format: other bytes with $how"
    done
    kiln import one.$suffix $format.db >/dev/null || fail "import of $format"
    must 0 kiln export $format.db --layer source -o $format.ply
    # from the file and back: the rows of the first trip
    must 0 kiln export $format.db --layer source --format $format -w -o again.$suffix
    kiln import again.$suffix again-$format.db >/dev/null || fail "import of $format again"
    [ "$(kiln verify $format.db --digest | grep '^layer source')" = "$(kiln verify again-$format.db --digest | grep '^layer source')" ] ||
        fail "$format: what was read is written as something else"
done

python3 - <<'PY' || fail 'values'
import math, struct, sys
def ply(path):
    data = open(path, 'rb').read()
    head, body = data.split(b'end_header\n', 1)
    names = [l.split()[-1].decode() for l in head.split(b'\n') if l.startswith(b'property float')]
    n = int([l for l in head.split(b'\n') if l.startswith(b'element vertex')][0].split()[-1])
    assert len(body) == n * 4 * len(names)
    return n, names, [dict(zip(names, r)) for r in struct.iter_unpack('<%df' % len(names), body)]
n, names, want = ply('b.ply')
assert n > 1500 * 4
def half(v): return 2.0 ** (max(math.frexp(v)[1], -13) - 12) # half a step of a half
def sigmoid(v): return 1 / (1 + math.exp(-v))
for kind, degree in (('glb', 3), ('ksplat', 2), ('ksplat0', 2), ('ksplat2', 2)):
    m, _, got = ply(kind + '.ply')
    assert m == n, kind
    K, k = 15, (degree + 1) ** 2 - 1
    rest = [c * K + i for c in range(3) for i in range(k)]
    values = [w['f_rest_%d' % i] for w in want for i in rest]
    exact, halves = kind in ('glb', 'ksplat0'), kind in ('ksplat', 'ksplat2')
    sh_step = (max(values) - min(values)) / 255
    # no step is larger than 16 bits for the whole scene, and most are far smaller: buckets are small, and sections of like buckets
    size = max(max(w[a] for w in want) - min(w[a] for w in want) for a in 'xyz')
    off = sorted(max(abs(w[a] - g[a]) for a in 'xyz') for w, g in zip(want, got))
    assert off[-1] <= (0 if exact else size / 65536 / 2), (kind, 'position', off[-1], size)
    assert off[n // 2] <= size / 65536 / 8, (kind, 'positions', off[n // 2], size)
    for w, g in zip(want, got):
        for i in range(3):
            a, b = math.exp(w['scale_%d' % i]), math.exp(g['scale_%d' % i])
            assert abs(a - b) <= (half(a) if halves else 0) + 4e-7 * a, (kind, 'scale', w, g)
            a, b = w['f_dc_%d' % i], g['f_dc_%d' % i]
            if kind == 'glb': assert a == b
            elif abs(a) < 1.77: assert abs(a - b) <= 0.5001 / 255 / 0.28209479177387814, (kind, 'colour', a, b)
        a, b = sigmoid(w['opacity']), sigmoid(g['opacity'])
        assert abs(a - b) <= (1e-7 if kind == 'glb' else 0.75 / 255), (kind, 'opacity', a, b)
        q = [w['rot_%d' % i] for i in range(4)]
        length = math.sqrt(sum(v * v for v in q))
        for i in range(4):
            a, b = q[i] / length, g['rot_%d' % i]
            assert abs(a - b) <= (half(a) if halves else 1e-7) * 1.001, (kind, 'rotation', a, b)
        for c in range(3):
            for i in range(k):
                a, b = w['f_rest_%d' % (c * K + i)], g['f_rest_%d' % (c * k + i)]
                if exact: assert a == b
                elif kind == 'ksplat': assert abs(a - b) <= half(a), (kind, 'sh', a, b)
                else: assert abs(a - b) <= 0.5001 * sh_step, (kind, 'sh', a, b)
PY

# drawn from the file beside the bake
for format in glb ksplat0; do
    must 0 "$KILN_BIN/kiln-export" b.db --format $format --report-loss 1 -o loss.${format%[0-9]}
    grep -qE '[0-9] dB$| equal$' err out || fail "$format: no loss is told: $(cat err out)"
done

# what lies far away costs its neighbours their places, which is said
python3 - <<'PY' || fail 'far.ply'
import struct
names = ['x', 'y', 'z', 'f_dc_0', 'f_dc_1', 'f_dc_2', 'opacity', 'scale_0', 'scale_1', 'scale_2', 'rot_0', 'rot_1', 'rot_2', 'rot_3']
with open('far.ply', 'wb') as f:
    f.write(b'ply\nformat binary_little_endian 1.0\nelement vertex 700\n')
    f.write(b''.join(b'property float %s\n' % c.encode() for c in names) + b'end_header\n')
    for i in range(700): # 256 rows a bucket: the far ones are in the first
        f.write(struct.pack('<14f', 9e6 if i < 5 else i / 700, 0, 0, 0, 0, 0, 1, 9 if i == 100 else -4, -6, -6, 1, 0, 0, 0))
PY
kiln import far.ply far.db >/dev/null || fail 'import of far.ply'
for format in ksplat ksplat2; do
    must 0 "$KILN_BIN/kiln-export" far.db --layer source --format $format -w -o far.ksplat
    grep -q ': 255 rows are placed in steps larger than they are; .*--filter-box' err || fail "$format with far rows: $(cat err)"
    must 0 "$KILN_BIN/kiln-export" far.db --layer source --format $format -w -o near.ksplat --filter-box=-,-,-,1,-,-
    ! grep -q 'steps larger' err || fail "$format without far rows: $(cat err)"
done
must 0 "$KILN_BIN/kiln-export" far.db --layer source -o far.compressed.ply
grep -q '[0-9] rows are placed in steps larger than they are; .*--filter-box' err || fail "compressed PLY with far rows: $(cat err)"
must 0 "$KILN_BIN/kiln-export" far.db --layer source -o far.compressed.ply --filter-box=-,-,-,1,-,-
! grep -q 'steps larger' err || fail "compressed PLY without far rows: $(cat err)"
must 0 "$KILN_BIN/kiln-export" far.db --layer source --format ksplat0 -w -o far.ksplat
! grep -q 'steps larger' err || fail "level 0 has no steps: $(cat err)"

# axes: as the PLY has them, both ways
must 0 kiln export b.db --frame as-is -o as-is.glb
cmp -s as-is.glb one.glb && fail '--frame as-is changes nothing'
kiln import as-is.glb as-is.db --frame as-is >/dev/null || fail 'import as-is'
[ "$(kiln verify as-is.db --digest | grep '^layer source')" = "$(kiln verify glb.db --digest | grep '^layer source')" ] ||
    fail 'turned and turned back is not what was never turned'

# the flag of the extras, read and written
python3 - <<'PY' || fail 'extras'
import struct
data = open('one.glb', 'rb').read()
n = struct.unpack_from('<I', data, 12)[0]
text = data[20:20 + n].rstrip().replace(b'"mode":0', b'"mode":0,"extras":{"antialiased":true}')
text += b' ' * (-len(text) % 4)
rest = data[20 + n:]
open('flag.glb', 'wb').write(data[:8] + struct.pack('<II', 20 + len(text) + len(rest), len(text)) + b'JSON' + text + rest)
PY
kiln import flag.glb flag.db >/dev/null || fail 'import of the flag'
must 0 "$KILN_BIN/kiln-export" flag.db --layer source -o flag-again.glb
grep -q 'antialiased' err || fail "nothing is said of the flag: $(cat err)"
grep -aq '"extras":{"antialiased":true}' flag-again.glb || fail 'the flag is lost'
grep -aq '"extras"' one.glb && fail 'a scene that is not antialiased has the flag'
must 0 "$KILN_BIN/kiln-export" flag.db --layer source -o flag.ksplat
grep -q 'antialiased' err || fail "nothing is said of the flag in .ksplat: $(cat err)"
