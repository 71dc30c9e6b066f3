#!/bin/bash
# Depth as numbers whose scale is said, and in colours.
. tests/e2e/lib.sh
command -v python3 >/dev/null || skip "no python3"
cd "$KILN_TMP" || exit 1
json() { python3 -c 'import json, sys; d = json.load(open("out")); assert eval(sys.argv[1]), d' "$1" || fail "$1"; }
cat >depth.py <<'P'
import struct, zlib
def png(path):
    data, body, text, at = open(path, 'rb').read(), b'', '', 8
    while at < len(data):
        n, kind = struct.unpack('>I4s', data[at:at + 8])
        part = data[at + 8:at + 8 + n]
        if kind == b'IHDR': w, h, bits, colour = struct.unpack('>IIBB', part[:10])
        if kind == b'IDAT': body += part
        if kind == b'tEXt' and part.startswith(b'Unit'): text = part.decode()
        at += 12 + n
    body, step = zlib.decompress(body), bits // 8 * {0: 1, 2: 3}[colour]
    rows, above, size = b'', bytes(step * w), step * w
    for y in range(h):
        f, row = body[y * (size + 1)], bytearray(body[y * (size + 1) + 1:(y + 1) * (size + 1)])
        for i in range(size):
            a, b, c = (row[i - step] if i >= step else 0), above[i], (above[i - step] if i >= step else 0)
            p = a + b - c
            best = min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]
            row[i] = (row[i] + (0, a, b, (a + b) // 2, best)[f]) & 255
        rows, above = rows + row, bytes(row)
    return w, h, bits, colour, text, rows
def npy(path):
    raw = open(path, 'rb').read()
    return struct.unpack('<%df' % (96 * 64), raw[10 + struct.unpack('<H', raw[8:10])[0]:])
P
scene s 3000 2 96x64
mkdir m && bake s m/x.db
before=$(digest m/x.db)
must 0 kiln render m/x.db --camera cam0 --depth --format npy -o a.npy
must 0 "$KILN_BIN/kiln-render" m/x.db --camera cam0 --depth -o b.png
printed=$(sed -n 's/^cam0: depth in scene units = value \* \([^ ]*\)  -> b.depth.png$/\1/p' out)
[ -n "$printed" ] || fail "the scale is not printed: $(cat out)"
must 0 kiln render m/x.db --camera cam0 --depth -o b.png --json
json 'd["views"][0]["depth_file"] == "b.depth.png" and abs(d["views"][0]["depth_step"] / '"$printed"' - 1) < 1e-8'
python3 - "$printed" <<'P' || fail 'depth as numbers'
import struct, sys
from depth import png, npy
w, h, bits, colour, text, rows = png('b.depth.png')
assert (w, h, bits, colour) == (96, 64, 16, 0)
assert text == 'Unit\0expected depth in scene units = value * ' + sys.argv[1], text
step, values, want = float(sys.argv[1]), struct.unpack('>6144H', rows), npy('a.depth.npy')
assert max(values) == 65535 and max(want) > 0
assert all(abs(v * step - d) <= 0.51 * step for v, d in zip(values, want))
P
must 0 kiln render m/x.db --camera cam0 --depth-colours --format npy -o c.npy # numbers for programs, and colours to look at
python3 - <<'P' || fail 'depth in colours'
from depth import png, npy
w, h, bits, colour, text, rows = png('c.depth.png')
assert (w, h, bits, colour) == (96, 64, 8, 2) and text.startswith('Unit\0turbo'), text
depth = npy('a.depth.npy')
seen = sorted(range(6144), key=lambda i: depth[i] or 1e9)
pixel = lambda i: rows[3 * i:3 * i + 3]
near, far = pixel(seen[0]), pixel(max(range(6144), key=lambda i: depth[i]))
assert near[0] > 100 > near[2] and far[2] > 100 > far[0], (near, far)
empty = [i for i in range(6144) if depth[i] == 0]
assert all(pixel(i) == b'\0\0\0' for i in empty)
P
must 0 kiln render m/x.db --camera cam0 --crop 32x16+8+24 --depth --format npy -o d.npy
python3 - <<'P' || fail 'the depth is not cut out'
import struct
from depth import npy
raw = open('d.depth.npy', 'rb').read()
part, whole = struct.unpack('<512f', raw[-2048:]), npy('a.depth.npy')
assert b'(16, 32' in raw[:128] and all(part[y * 32 + x] == whole[(y + 24) * 96 + 8 + x] for y in range(16) for x in range(32))
P
# stored like other options, and in the keys: asked for, it is drawn; not asked for, pictures have the keys of before
must 0 kiln render m/x.db --depth-colours
[ -e m/renders/cam1.depth.png ] || fail 'no colours'
must 0 "$KILN_BIN/kiln-render" m/x.db
grep -q 'nothing to do' err || fail "--depth-colours is not kept: $(cat err)"
must 0 kiln render m/x.db --no-depth-colours --json
json 'd["frames_drawn"] == 0'
[ "$(digest m/x.db)" = "$before" ] || fail 'depth changes the bake'
exit 0
