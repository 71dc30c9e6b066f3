# spz_steps make FILE DEGREE ROWS: a PLY of random Gaussians that SPZ holds without clamping
# spz_steps near A B DEGREE: B, read back from an SPZ, is A within half a step of SPZ's codes, row by row
# spz_steps planes FILE: the planes of an SPZ of version 3, header first, to stdout; it is one gzip stream with nothing behind it
import array, math, random, struct, sys, zlib

def columns(degree):
    rest = 3 * ((degree + 1) ** 2 - 1)
    return (['x', 'y', 'z'] + ['f_dc_%d' % i for i in range(3)] + ['f_rest_%d' % i for i in range(rest)] + ['opacity'] +
            ['scale_%d' % i for i in range(3)] + ['rot_%d' % i for i in range(4)])

def make(path, degree, n):
    r = random.Random(degree + 11)
    names = columns(degree)
    with open(path, 'wb') as f:
        f.write(b'ply\nformat binary_little_endian 1.0\nelement vertex %d\n' % n)
        f.write(b''.join(b'property float %s\n' % c.encode() for c in names) + b'end_header\n')
        for i in range(n):
            row = {c: r.uniform(-0.95, 0.95) for c in names}
            row.update({c: r.uniform(-30, 30) for c in 'xyz'}, opacity=r.gauss(0, 3))
            row.update({'scale_%d' % k: r.uniform(-9.9, 5.9) for k in range(3)})
            q = [r.gauss(0, 1) for _ in range(4)]
            if i % 5 == 0: q[i % 4] = q[(i + 1) % 4] # two that are the largest, often
            row.update({'rot_%d' % k: q[k] * (i % 3 + 1) for k in range(4)}, f_dc_0=r.uniform(-3.2, 3.2))
            f.write(struct.pack('<%df' % len(names), *(row[c] for c in names)))

def read(path):
    b = open(path, 'rb').read()
    at = b.index(b'end_header\n') + 11
    names = [line.split()[2].decode() for line in b[:at].split(b'\n') if line.startswith(b'property')]
    values = array.array('f', b[at:])
    return {c: values[i::len(names)] for i, c in enumerate(names)}

def worst(a, b, names):
    return max((abs(x - y) for c in names for x, y in zip(a[c], b[c])), default=0)

def near(one, other, degree):
    a, b = read(one), read(other)
    n, m = len(a['x']), (degree + 1) ** 2 - 1
    assert n == len(b['x']) and len(columns(degree)) <= len(b), (n, len(b['x']), sorted(b))
    sigmoid = lambda v: 1 / (1 + math.exp(-v))
    band = lambda first, end: ['f_rest_%d' % (c * m + k) for c in range(3) for k in range(first, end)]
    for what, off, most in (('positions', worst(a, b, 'xyz'), 1 / 8192),
                            ('scales', worst(a, b, ['scale_%d' % k for k in range(3)]), 1 / 32),
                            ('colours', worst(a, b, ['f_dc_%d' % k for k in range(3)]), 0.5 / 255 / 0.15),
                            ('degree 1', worst(a, b, band(0, min(m, 3))), 4 / 128),
                            ('higher degrees', worst(a, b, band(3, m)), 8 / 128),
                            ('alphas', max(abs(sigmoid(x) - sigmoid(y)) for x, y in zip(a['opacity'], b['opacity'])), 0.5 / 255)):
        assert off <= most * (1 + 1e-5) + 1e-6, '%s are off by %g, more than half a step, %g' % (what, off, most)
    for i in range(n):
        p, q = ([s['rot_%d' % k][i] for k in range(4)] for s in (a, b))
        dot = sum(x * y for x, y in zip(p, q)) / math.sqrt(sum(x * x for x in p) * sum(y * y for y in q))
        assert 1 - abs(dot) < 4e-6, 'rotation %d is off by %g' % (i, 1 - abs(dot))

def planes(path):
    d = zlib.decompressobj(31)
    out = d.decompress(open(path, 'rb').read())
    assert d.eof and not d.unused_data and out[:4] == b'NGSP', 'no single gzip stream of an SPZ'
    return out

if sys.argv[1] == 'make': make(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
if sys.argv[1] == 'near': near(sys.argv[2], sys.argv[3], int(sys.argv[4]))
if sys.argv[1] == 'planes': sys.stdout.buffer.write(planes(sys.argv[2]))
