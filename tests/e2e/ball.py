# ball DIR [CAMERAS [WIDTH HEIGHT]] -- a scene of 150 Gaussians in a ball with nothing around it: pictures have edges and an outside.
import math, os, random, struct, sys

dir, cameras, width, height = sys.argv[1], *(int(v) for v in (sys.argv[2:] + ['1', '96', '64'][len(sys.argv) - 2:]))
names = ['x', 'y', 'z', 'f_dc_0', 'f_dc_1', 'f_dc_2', 'opacity', 'scale_0', 'scale_1', 'scale_2', 'rot_0', 'rot_1', 'rot_2', 'rot_3']
os.makedirs(dir)
random.seed(5)
with open(dir + '/scene.ply', 'wb') as f:
    f.write(b'ply\nformat binary_little_endian 1.0\nelement vertex 150\n')
    for name in names: f.write(b'property float %s\n' % name.encode())
    f.write(b'end_header\n')
    for i in range(150):
        at = [random.gauss(0, .35) for _ in range(3)]
        colour = [random.uniform(-1.4, 1.4) for _ in range(3)]
        f.write(struct.pack('<14f', *at, *colour, random.uniform(-2, 3), *[random.uniform(-3, -1.7) for _ in range(3)], 1, .3, .1, 0))
views = []
for k in range(cameras):
    a = 2 * math.pi * k / cameras
    forward, right = [math.sin(a), 0, math.cos(a)], [math.cos(a), 0, -math.sin(a)]
    r = right + [0, 1, 0] + forward
    views.append('{"name": "cam%d", "R": %s, "t": [0, 0, 4], "fx": %d, "fy": %d, "cx": %g, "cy": %g, "width": %d, "height": %d}'
                 % (k, r, width, width, width / 2, height / 2, width, height))
open(dir + '/cameras.json', 'w').write('[\n' + ',\n'.join(views) + '\n]\n')
