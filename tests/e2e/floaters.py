# floaters FILE FAR N -- 4,000 Gaussians on a sphere of one unit, and N floaters FAR units away in all directions, in no order. SH degree 1.
import math, random, struct, sys


def write(path, far, n):
    r, rows = random.Random(3), []
    names = ['x', 'y', 'z'] + ['f_dc_%d' % i for i in range(3)] + ['f_rest_%d' % i for i in range(9)] + ['opacity']
    names += ['scale_%d' % i for i in range(3)] + ['rot_%d' % i for i in range(4)]
    for i in range(4000 + n):
        d = [r.gauss(0, 1) for _ in range(3)]
        at = (far if i >= 4000 else 1) / math.sqrt(sum(x * x for x in d))
        rows.append(struct.pack('<%df' % len(names), *(x * at for x in d), *(r.uniform(-1, 1) for _ in range(12)), r.uniform(-1, 4),
                                *(r.uniform(-4.5, -3.5) for _ in range(3)), *(r.gauss(0, 1) for _ in range(4))))
    r.shuffle(rows)
    head = 'ply\nformat binary_little_endian 1.0\nelement vertex %d\n' % len(rows) + ''.join('property float %s\n' % k for k in names)
    open(path, 'wb').write(head.encode() + b'end_header\n' + b''.join(rows))


def positions(path):
    head, body = open(path, 'rb').read().split(b'end_header\n', 1)
    types = [l.split() for l in head.decode().splitlines() if l.startswith('property')]
    one = struct.Struct('<' + ''.join({'float': 'f', 'double': 'd', 'uchar': 'B', 'uint': 'I', 'int': 'i'}[t[1]] for t in types))
    at = [[t[2] for t in types].index(k) for k in 'xyz']
    return [tuple(row[i] for i in at) for row in one.iter_unpack(body)]


def tiles(path):
    """Positions of all rows that a viewer draws nearby: of tiles without children, in a PLY's axes, and how exact each is."""
    import gzip, json, os
    folder, found = os.path.dirname(path), []

    def walk(tile):
        for child in tile.get('children', []): walk(child)
        if tile.get('children') or 'content' not in tile: return
        data = open(os.path.join(folder, tile['content']['uri']), 'rb').read()
        size = struct.unpack_from('<I', data, 12)[0]
        g, raw = json.loads(data[20:20 + size]), gzip.decompress(data[28 + size:])
        t, (n, _, fraction) = g['nodes'][0]['matrix'][12:15], struct.unpack_from('<IBB', raw, 8)
        for i in range(n):
            v = [int.from_bytes(raw[16 + 9 * i + 3 * c:19 + 9 * i + 3 * c], 'little', signed=True) / 2**fraction + t[c] for c in range(3)]
            found.append(((v[0], -v[1], -v[2]), 2.0**-fraction))
    walk(json.load(open(path))['root'])
    return found


def rad(path):
    """Positions of the leaves of a RAD, and the number of all rows."""
    import json, zlib
    data = open(path, 'rb').read()
    padded = lambda n: (n + 7) // 8 * 8
    at = padded(8 + struct.unpack_from('<I', data, 4)[0])
    found, rows = [], 0
    while at < len(data) and data[at:at + 4] == b'RADC':
        size = struct.unpack_from('<I', data, at + 4)[0]
        head, at = json.loads(data[at + 8:at + 8 + size]), at + padded(8 + size)
        payload, n = at + 8, head['count']
        plane = {p['property']: zlib.decompress(data[payload + p['offset']:payload + p['offset'] + p['bytes']], -15) for p in head['properties']}
        c, below = plane['center'], struct.unpack('<%dH' % n, plane['child_count'])
        for i in range(n):
            v = [struct.unpack('<f', bytes(c[(b * 3 + k) * n + i] for b in range(4)))[0] for k in range(3)]
            if below[i] == 0: found.append(tuple(v))
        rows, at = rows + n, padded(payload + struct.unpack_from('<Q', data, at)[0])
    return found, rows


if __name__ == '__main__': write(sys.argv[1], float(sys.argv[2]), int(sys.argv[3]))
