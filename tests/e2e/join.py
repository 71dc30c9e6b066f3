"""What e2e/join needs: PLY files put together, taken apart and changed; cameras moved by their definition, x' = s Rz Ry Rx x + t.

  join.py together OUT A B       one PLY with the rows of both
  join.py parts DIR A N          N files of its rows, in order
  join.py degree OUT A L         without the coefficients above SH degree L
  join.py column OUT A TYPE NAME VALUE    with one more column, in front
  join.py points OUT A           positions alone
  join.py small OUT A            the small Gaussians round the middle
  join.py comment OUT A TEXT     with a comment
  join.py cameras OUT IN tx,ty,tz rx,ry,rz s
"""
import json
import math
import os
import struct
import sys

SIZES = {'float': ('f', 4), 'double': ('d', 8), 'int': ('i', 4), 'uchar': ('B', 1)}


def read(path):
    data = open(path, 'rb').read()
    end = data.index(b'end_header\n') + 11
    lines = data[:end].decode().split('\n')
    columns = [tuple(l.split()[1:]) for l in lines if l.startswith('property')]
    n = int(next(l for l in lines if l.startswith('element')).split()[2])
    form = '<' + ''.join(SIZES[t][0] for t, _ in columns)
    return columns, [list(r) for r in struct.iter_unpack(form, data[end:])][:n]


def write(path, columns, rows, comment=None):
    with open(path, 'wb') as f:
        f.write(b'ply\nformat binary_little_endian 1.0\n')
        if comment:
            f.write(b'comment %s\n' % comment.encode())
        f.write(b'element vertex %d\n' % len(rows))
        for c in columns:
            f.write(b'property %s %s\n' % (c[0].encode(), c[1].encode()))
        f.write(b'end_header\n')
        form = '<' + ''.join(SIZES[t][0] for t, _ in columns)
        for r in rows:
            f.write(struct.pack(form, *r))


def pick(columns, rows, names):
    index = {c[1]: i for i, c in enumerate(columns)}
    keep = [index[n] for n in names]
    return [columns[i] for i in keep], [[r[i] for i in keep] for r in rows]


def times(a, b):
    return [[sum(a[i][k] * b[k][j] for k in range(3)) for j in range(3)] for i in range(3)]


def about(axis, degrees):
    c, s = math.cos(math.radians(degrees)), math.sin(math.radians(degrees))
    return {'x': [[1, 0, 0], [0, c, -s], [0, s, c]], 'y': [[c, 0, s], [0, 1, 0], [-s, 0, c]],
            'z': [[c, -s, 0], [s, c, 0], [0, 0, 1]]}[axis]


def cameras(out, source, translate, rotate, scale):
    t, r, s = [float(v) for v in translate.split(',')], [float(v) for v in rotate.split(',')], float(scale)
    turn = times(about('z', r[2]), times(about('y', r[1]), about('x', r[0])))
    back = [list(c) for c in zip(*turn)]
    all_ = json.load(open(source))
    for c in all_:
        pose = [c['R'][3 * i:3 * i + 3] for i in range(3)]
        pose = times(pose, back)
        c['t'] = [s * c['t'][i] - sum(pose[i][k] * t[k] for k in range(3)) for i in range(3)]
        c['R'] = [v for row in pose for v in row]
    json.dump(all_, open(out, 'w'))


def main():
    what, out, args = sys.argv[1], sys.argv[2], sys.argv[3:]
    if what == 'cameras':
        return cameras(out, *args)
    columns, rows = read(args[0])
    if what == 'together':
        others, more = read(args[1])
        assert columns == others
        write(out, columns, rows + more)
    elif what == 'parts':
        n = int(args[1])
        os.makedirs(out, exist_ok=True)
        for k in range(n):
            write(f'{out}/part{k}.ply', columns, rows[len(rows) * k // n:len(rows) * (k + 1) // n])
    elif what == 'degree':
        have, want = (sum(c[1].startswith('f_rest') for c in columns)) // 3, (int(args[1]) + 1)**2 - 1
        rest = [f'f_rest_{c * have + k}' for c in range(3) for k in range(want)]
        names = [c[1] for c in columns if not c[1].startswith('f_rest')] + rest
        columns, rows = pick(columns, rows, names)
        seen = iter(range(3 * want))
        write(out, [(t, f'f_rest_{next(seen)}') if n.startswith('f_rest') else (t, n) for t, n in columns], rows)
    elif what == 'column':
        write(out, [(args[1], args[2])] + columns, [[type(0)(args[3]) if args[1] in ('int', 'uchar') else float(args[3])] + r for r in rows])
    elif what == 'points':
        write(out, *pick(columns, rows, ['x', 'y', 'z']))
    elif what == 'small':
        index = {c[1]: i for i, c in enumerate(columns)}
        write(out, columns, [r for r in rows if all(abs(r[index[a]]) < 3 for a in 'xyz') and
                             all(r[index[f'scale_{k}']] < -2 for k in range(3))])
    elif what == 'comment':
        write(out, columns, rows, args[1])


main()
