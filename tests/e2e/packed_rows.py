"""packed_rows PLY FILE -- is FILE (compressed PLY, .splat or CSV) what its format's formulas make of the rows of PLY, in their order?
Every value within half a step of its code, bounds those of 256 rows each, floats of text bit by bit. A compressed PLY may have the rows
in another order; printed is the sum of its groups' diagonals as a share of that in the PLY's order."""
import array, bisect, math, struct, sys

C0 = 0.28209479177387814


def header(data):
    end = data.index(b'end_header\n') + 11
    elements = []
    for line in data[:end].decode().split('\n'):
        w = line.split()
        if w[:1] == ['element']:
            elements.append((w[1], int(w[2]), []))
        elif w[:1] == ['property']:
            elements[-1][2].append((w[2], w[1]))
    return end, elements


def plain(path):
    data = open(path, 'rb').read()
    at, elements = header(data)
    name, n, columns = elements[0]
    assert name == 'vertex' and all(t == 'float' for _, t in columns)
    values = array.array('f', data[at:at + 4 * n * len(columns)])
    return n, {c: values[i::len(columns)] for i, (c, _) in enumerate(columns)}


def near(got, want, half, slack, what):
    if not abs(got - want) <= half + slack:
        sys.exit('%s: %r is written as %r, half a step is %r' % (what, want, got, half))


def unit(q):
    length = math.sqrt(sum(v * v for v in q))
    return [v / length for v in q]


def sigmoid(v):
    return 1 / (1 + math.exp(-v))


def diagonals(rows, n):
    sides = lambda g: ((max(rows[c][g:g + 256]) - min(rows[c][g:g + 256])) * w for c, w in (('x', 1), ('y', 2), ('z', 1)))
    return sum(math.hypot(*sides(g)) for g in range(0, n, 256))


def in_order_of(bounds, packed, n, rows):
    """The rows as the file has them: each is the one left that is within half a step of the position and nearest in colour."""
    left, order = sorted((rows['x'][r], r) for r in range(n)), []
    for i in range(n):
        b, p, k = bounds[18 * (i // 256):], packed[4 * i], packed[4 * i + 3]
        place = [b[c] + (b[3 + c] - b[c]) * (p >> s & m) / m for c, s, m in ((0, 21, 2047), (1, 11, 1023), (2, 0, 2047))]
        reach = [(b[3 + c] - b[c]) / m / 2 + 2e-7 * max(abs(b[c]), abs(b[3 + c])) for c, m in ((0, 2047), (1, 1023), (2, 2047))]
        colour = [b[12 + c] + (b[15 + c] - b[12 + c]) * (k >> 24 - 8 * c & 255) / 255 for c in range(3)]
        first, last = bisect.bisect_left(left, (place[0] - reach[0], 0)), bisect.bisect_right(left, (place[0] + reach[0], n))
        near_ones = [(x, r) for x, r in left[first:last] if all(abs(rows[a][r] - v) <= e for a, v, e in zip('yz', place[1:], reach[1:]))]
        if not near_ones:
            sys.exit('row %d is at %r, where no row is left' % (i, place))
        chosen = min(near_ones, key=lambda xr: sum(abs(rows['f_dc_%d' % c][xr[1]] * C0 + 0.5 - colour[c]) for c in range(3)))
        del left[bisect.bisect_left(left, chosen)]
        order.append(chosen[1])
    return {c: array.array('f', [v[r] for r in order]) for c, v in rows.items()}


def compressed(data, n, rows):
    at, elements = header(data)
    n_groups = (n + 255) // 256
    n_sh = sum(1 for c in rows if c.startswith('f_rest'))
    assert [(e[0], e[1]) for e in elements] == [('chunk', n_groups), ('vertex', n)] + ([('sh', n)] if n_sh else [])
    assert len(data) == at + 72 * n_groups + (16 + n_sh) * n, 'size'
    bounds = array.array('f', data[at:at + 72 * n_groups])
    at += 72 * n_groups
    packed = array.array('I', data[at:at + 16 * n])
    sh = data[at + 16 * n:]
    share = diagonals(rows, n)
    rows = in_order_of(bounds, packed, n, rows)
    print('%.3f' % (diagonals(rows, n) / share))
    position, scale, colour = (['x', 'y', 'z'], ['scale_0', 'scale_1', 'scale_2'], ['f_dc_0', 'f_dc_1', 'f_dc_2'])
    shifts = {0: (21, 11, 0), 1: (21, 11, 0), 2: (24, 16, 8)}
    steps = {0: (2047, 1023, 2047), 1: (2047, 1023, 2047), 2: (255, 255, 255)}
    for what, names, field in ((0, position, 0), (1, scale, 2), (2, colour, 3)):
        for c, name in enumerate(names):
            column = [max(-20, min(20, v)) if what == 1 else v * C0 + 0.5 if what == 2 else v for v in rows[name]]
            for g in range(n_groups):
                lo, hi = bounds[18 * g + 6 * what + c], bounds[18 * g + 6 * what + 3 + c]
                part = column[256 * g:256 * g + 256]
                slack = 1.2e-7 * max(abs(lo), abs(hi))
                near(lo, min(part), 0, slack, 'least of ' + name)
                near(hi, max(part), 0, slack, 'largest of ' + name)
                for i, v in enumerate(part):
                    t = (packed[4 * (256 * g + i) + field] >> shifts[what][c] & steps[what][c]) / steps[what][c]
                    near(lo * (1 - t) + hi * t, v, (hi - lo) / steps[what][c] / 2, slack, name)
    for i in range(n):
        q = unit([rows['rot_%d' % c][i] for c in range(4)])
        v = packed[4 * i + 1]
        place = v >> 30
        assert abs(q[place]) == max(map(abs, q)), 'largest of a rotation'
        others = [(v >> s & 1023) / 1023 * math.sqrt(2) - math.sqrt(0.5) for s in (20, 10, 0)]
        sign = -1 if q[place] < 0 else 1
        for c, got in zip([c for c in range(4) if c != place], others):
            near(got, sign * q[c], math.sqrt(0.5) / 1023, 1e-7, 'rotation')
        near((packed[4 * i + 3] & 255) / 255, sigmoid(rows['opacity'][i]), 0.5 / 255, 1e-7, 'opacity')
    for c in range(n_sh):
        for b, v in zip(sh[c::n_sh], rows['f_rest_%d' % c]):
            got = -4 if b == 0 else 4 if b == 255 else (b - 127.5) / 32
            v = max(-4, min(4, v))
            near(got, v, 1.5 / 64 if abs(v) > 4 - 1.5 / 32 else 1 / 64, 0, 'f_rest')


def splat(data, n, rows):
    """The most important rows first, as their codes say: size times opacity."""
    assert len(data) == 32 * n, 'size'
    at, last = {tuple(rows[c][i] for c in 'xyz'): i for i in range(n)}, math.inf
    assert len(at) == n, 'rows at one place'
    for k in range(n):
        v = struct.unpack_from('<6f8B', data, 32 * k)
        i = at.pop(v[:3], None)
        assert i is not None, 'position'
        importance = v[3] * v[4] * v[5] * v[9]
        assert importance <= last * (1 + 1e-5), 'order'
        last = importance
        for c in range(3):
            near(v[3 + c], math.exp(rows['scale_%d' % c][i]), 0, 1.2e-7 * v[3 + c], 'scale')
            near(v[6 + c] / 255, max(0, min(1, rows['f_dc_%d' % c][i] * C0 + 0.5)), 0.5 / 255, 1e-7, 'colour')
        near(v[9] / 255, sigmoid(rows['opacity'][i]), 0.5 / 255, 1e-7, 'opacity')
        for c, q in enumerate(unit([rows['rot_%d' % c][i] for c in range(4)])):
            near((v[10 + c] - 128) / 128, q, 1 / 128 if q > 127.5 / 128 else 0.5 / 128, 1e-6, 'rotation')


def csv(data, n, rows):
    lines = data.decode().split('\n')
    names = lines[0].split(',')
    assert names == (['x', 'y', 'z', 'rot_0', 'rot_1', 'rot_2', 'rot_3', 'scale_0', 'scale_1', 'scale_2', 'opacity', 'f_dc_0', 'f_dc_1', 'f_dc_2']
                     + sorted((c for c in rows if c.startswith('f_rest')), key=lambda c: int(c[7:])) + ['source_row']), names
    assert len(lines) == n + 2 and lines[-1] == '', 'lines'
    seen = set()
    for i, line in enumerate(lines[1:-1]):
        values = line.split(',')
        assert len(values) == len(names)
        for name, text in zip(names[:-1], values):
            assert struct.pack('<f', float(text)) == struct.pack('<f', rows[name][i]), (name, i, text)
            assert len(text.lstrip('-').replace('.', '').split('e')[0].strip('0')) <= 9, text
        seen.add(int(values[-1]))
    assert len(seen) == n, 'source rows'


n, rows = plain(sys.argv[1])
data = open(sys.argv[2], 'rb').read()
(compressed if data[:4] == b'ply\n' else csv if data[:2] == b'x,' else splat)(data, n, rows)
