# capture DIR [exploded] -- a scene as trained captures are: an object of one unit, an opaque background out to 140 units, cameras
# inside. In the background are 12 opaque Gaussians with axes of 4 to 10 units, 28 to 140 units away, each a hand's breadth from
# three others: far above the local spacing, and what the cameras see there. exploded: a fifth of the object's Gaussians are 200 times too large.
import math, os, random, struct, sys

dir, exploded = sys.argv[1], sys.argv[2:] == ['exploded']
names = ['x', 'y', 'z', 'f_dc_0', 'f_dc_1', 'f_dc_2', 'opacity', 'scale_0', 'scale_1', 'scale_2', 'rot_0', 'rot_1', 'rot_2', 'rot_3']
rows, r = [], random.Random(7)


def direction():
    v = [r.gauss(0, 1) for _ in range(3)]
    n = math.sqrt(sum(x * x for x in v))
    return [x / n for x in v]


def add(at, colour, opacity, axes):
    rows.append(struct.pack('<14f', *at, *((c - .5) / .2820948 for c in colour), math.log(opacity / (1 - opacity)),
                            *(math.log(a) for a in axes), r.gauss(0, 1), r.gauss(0, 1), r.gauss(0, 1), 1))


for i in range(2500):  # the object
    d = direction()
    grow = 200 if exploded and i % 5 == 0 else 1
    add([.5 * x for x in d], [.5 + .4 * math.sin(9 * x) for x in d], .9, [grow * .03 * r.uniform(.7, 1.4) for _ in range(3)])
for i in range(1200):  # the background
    d, far = direction(), r.uniform(30, 120)
    add([far * x for x in d], [.4 + .2 * math.sin(5 * x + far) for x in d], .95, [.07 * far * r.uniform(.7, 1.4) for _ in range(3)])
for k, (far, axis) in enumerate(((28, 4), (70, 7), (140, 10))):  # what shows there
    a = 2.1 * k
    for _ in range(4):
        at = [far * math.sin(a) + r.uniform(-.1, .1), r.uniform(-.1, .1) * far, far * math.cos(a) + r.uniform(-.1, .1)]
        add([at[0], .1 * far + r.uniform(-.1, .1), at[2]], [.95, .6, .1 + .4 * k], .9999, [axis, .8 * axis, .5 * axis])
os.makedirs(dir)
with open(dir + '/scene.ply', 'wb') as f:
    f.write(b'ply\nformat binary_little_endian 1.0\nelement vertex %d\n' % len(rows))
    for name in names: f.write(b'property float %s\n' % name.encode())
    f.write(b'end_header\n' + b''.join(rows))
views = []
for k in range(6):  # around the object, looking across it
    a = 2.1 * k / 2 + math.pi
    forward, right = [math.sin(a + math.pi), 0, math.cos(a + math.pi)], [math.cos(a + math.pi), 0, -math.sin(a + math.pi)]
    views.append('{"name": "cam%d", "R": %s, "t": [0, 0, 2], "fx": 120, "fy": 120, "cx": 80, "cy": 60, "width": 160, "height": 120}'
                 % (k, right + [0, 1, 0] + forward))
open(dir + '/cameras.json', 'w').write('[\n' + ',\n'.join(views) + '\n]\n')
