"""lens -- data sets of cameras with lenses, without other packages.

lens.py paths CAMERAS.json N FOCAL SIZE OUT.json      the first N poses of an INRIA cameras.json as a list of wide square pinholes
lens.py model CAMERAS.json N DIR DRAWINGS BEND FOCAL EACH   DIR/sparse/0 (text): EACH images of each model, of the N poses in turn;
                                                      bend's commands to stdout, which make DIR/images/MODEL/POSE.npy of DRAWINGS
lens.py bend CAMERAS.bin MODEL TERM...                every PINHOLE camera of a COLMAP model gets that model and these terms
lens.py text A B                                      the binary model in A as text in B
lens.py cameras A.bin B.bin                           the largest difference of their parameters; fails where sizes or models differ
"""
import json, math, os, struct, sys

WIDTH, HEIGHT, FOCAL = 720, 540, 630.0
cx, cy, f = WIDTH / 2 + 3.5, HEIGHT / 2 - 2.25, FOCAL
# mild enough for a pinhole of the drawing's field of view, strong enough to move pixels by tens
MODELS = {
    0: ('SIMPLE_PINHOLE', [f, cx, cy]), 1: ('PINHOLE', [f, f * 1.02, cx, cy]), 2: ('SIMPLE_RADIAL', [f, cx, cy, -0.15]),
    3: ('RADIAL', [f, cx, cy, -0.2, 0.08]), 4: ('OPENCV', [f, f * 1.01, cx, cy, -0.2, 0.06, 0.004, -0.006]),
    5: ('OPENCV_FISHEYE', [f, f * 0.99, cx, cy, 0.03, -0.02, 0.005, -0.001]),
    6: ('FULL_OPENCV', [f, f, cx, cy, 0.3, 0.05, 0.003, -0.002, 0.01, 0.42, 0.06, 0.01]), 7: ('FOV', [f * 0.8, f * 0.8, cx, cy, 0.8]),
    8: ('SIMPLE_RADIAL_FISHEYE', [f, cx, cy, 0.04]), 9: ('RADIAL_FISHEYE', [f, cx, cy, 0.05, -0.02]),
    10: ('THIN_PRISM_FISHEYE', [f, f, cx, cy, 0.03, -0.02, 0.002, -0.003, 0.004, -0.001, 0.003, -0.002]),
    11: ('RAD_TAN_THIN_PRISM_FISHEYE', [f, f, cx, cy, 0.03, -0.02, 0.004, -0.001, 2e-4, -1e-4, 0.002, -0.003, 0.002, -0.001, 3e-4, 4e-4]),
    12: ('SIMPLE_DIVISION', [f, cx, cy, -0.12]), 13: ('DIVISION', [f, f * 1.01, cx, cy, -0.1]), 14: ('SIMPLE_FISHEYE', [f, cx, cy]),
    15: ('FISHEYE', [f, f * 1.01, cx, cy]), 16: ('EUCM', [f, f, cx, cy, 0.55, 1.1]), 17: ('EQUIRECTANGULAR', [2600.0, 1300.0]),
}


def poses(path, n):
    """cam_from_world of INRIA's cameras, which are camera to world."""
    for c in json.load(open(path))[:n]:
        body, at = c['rotation'], c['position']
        r = [[body[k][i] for k in range(3)] for i in range(3)]
        yield c['img_name'].replace('/', '_'), r, [-sum(r[i][k] * at[k] for k in range(3)) for i in range(3)]


def quaternion(r):
    """w x y z by the largest of them."""
    t = [1 + r[0][0] + r[1][1] + r[2][2], 1 + r[0][0] - r[1][1] - r[2][2], 1 - r[0][0] + r[1][1] - r[2][2], 1 - r[0][0] - r[1][1] + r[2][2]]
    k = t.index(max(t))
    s = 2 * math.sqrt(t[k])
    a, b, c = r[2][1] - r[1][2], r[0][2] - r[2][0], r[1][0] - r[0][1]
    d, e, g = r[0][1] + r[1][0], r[0][2] + r[2][0], r[1][2] + r[2][1]
    return [v / s for v in [[s * s / 4, a, b, c], [a, s * s / 4, d, e], [b, d, s * s / 4, g], [c, e, g, s * s / 4]][k]]


def read_cameras(path):
    data = open(path, 'rb').read()
    at, out = 8, []
    for _ in range(struct.unpack('<Q', data[:8])[0]):
        number, model, width, height = struct.unpack('<IiQQ', data[at:at + 24])
        n = {0: 3, 1: 4}[model]
        out.append((number, model, width, height, struct.unpack('<%dd' % n, data[at + 24:at + 24 + 8 * n])))
        at += 24 + 8 * n
    return out


def to_text(a, b):
    take = lambda form: struct.unpack_from('<' + form, data, step(struct.calcsize('<' + form)))
    def step(size):
        nonlocal at
        at += size
        return at - size
    names = {m: (name, len(params)) for m, (name, params) in MODELS.items()}
    data, at = open(a + '/cameras.bin', 'rb').read(), 0
    with open(b + '/cameras.txt', 'w') as out:
        for _ in range(*take('Q')):
            number, model, width, height = take('IiQQ')
            print(number, names[model][0], width, height, *map(repr, take('%dd' % names[model][1])), file=out)
    data, at = open(a + '/images.bin', 'rb').read(), 0
    with open(b + '/images.txt', 'w') as out:
        for _ in range(*take('Q')):
            number, *pose, camera = take('I7dI')
            name = data[at:data.index(b'\0', at)].decode()
            at += len(name) + 1
            print(number, *map(repr, pose), camera, name, file=out)
            keypoints = [take('ddq') for _ in range(*take('Q'))]
            print(*(repr(v) for k in keypoints for v in k), file=out)
    data, at = open(a + '/points3D.bin', 'rb').read(), 0
    with open(b + '/points3D.txt', 'w') as out:
        for _ in range(*take('Q')):
            point = take('QdddBBBd')
            n, = take('Q')
            print(*map(repr, point + take('%dI' % (2 * n))), file=out)


def main(what, *args):
    if what == 'paths':
        cameras, n, focal, size, out = args
        json.dump([{'R': sum(r, []), 't': t, 'fx': float(focal), 'fy': float(focal), 'width': int(size), 'height': int(size), 'name': name}
                   for name, r, t in poses(cameras, int(n))], open(out, 'w'))
    elif what == 'model':
        cameras, n, folder, drawings, bend, focal, each = args
        all_poses = list(poses(cameras, int(n)))
        os.makedirs(folder + '/sparse/0')
        with open(folder + '/sparse/0/cameras.txt', 'w') as c, open(folder + '/sparse/0/images.txt', 'w') as i:
            number = 0
            for model, (name, params) in MODELS.items():
                width, height = (2600, 1300) if model == 17 else (WIDTH, HEIGHT)
                print(model + 1, name, width, height, *('%.17g' % v for v in params), file=c)
                os.makedirs(f'{folder}/images/{name}')
                for pose, r, t in [all_poses[(model + k) % len(all_poses)] for k in range(int(each))]:
                    number += 1
                    print(number, *('%.17g' % v for v in quaternion(r) + t), model + 1, f'{name}/{pose}.npy\n', file=i)
                    print(bend, f'{drawings}/{pose}.npy', focal, model, width, height, f'{folder}/images/{name}/{pose}.npy', *('%.17g' % v for v in params))
        open(folder + '/sparse/0/points3D.txt', 'w').close()
    elif what == 'bend':
        path, model, *terms = args
        one = int(model) in (0, 2, 3, 8, 9, 12, 14)
        cameras = read_cameras(path)
        with open(path, 'wb') as out:
            out.write(struct.pack('<Q', len(cameras)))
            for number, _, width, height, p in cameras:
                p = list(p[:1] + p[2:] if one else p) + [float(v) for v in terms]
                out.write(struct.pack('<IiQQ%dd' % len(p), number, int(model), width, height, *p))
    elif what == 'text':
        to_text(*args)
    elif what == 'cameras':
        a, b = ({(*c[2:4], *(c[4][:1] + c[4] if c[1] == 0 else c[4])) for c in read_cameras(p)} for p in args)
        worst = max(min(max(abs(x - y) for x, y in zip(p, q)) for q in a) for p in b)
        assert len(a) == len(b), (a, b)
        print(worst)
        assert worst <= 1e-9, (a, b)


main(*sys.argv[1:])
