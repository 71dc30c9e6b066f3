"""far -- a small scene as captures are: an object of one unit with cameras around it, and an opaque background from 25 to 120 units.
Arguments: FOLDER [near|room] [FLOATER]. Writes scene.ply and cameras.json, ten cameras for training and three for tests. near: without background; room: with
walls at 3 to 6 units for it. FLOATER: one more row, at this x."""
import json
import math
import random
import struct
import sys

draw = random.Random(20261129)


def direction():
    while True:
        v = [draw.gauss(0, 1) for _ in range(3)]
        length = math.sqrt(sum(c * c for c in v))
        if length > 0.1:
            return [c / length for c in v]


rows = []
for _ in range(3000):
    d = direction()
    light = 0.9 if (math.floor(6 * math.atan2(d[2], d[0])) + math.floor(6 * d[1])) % 2 else 0.1
    colour = [(light * k + draw.uniform(-0.05, 0.05) - 0.5) / 0.28209479 for k in (1, 0.7, 0.4)]
    rows.append(d + colour + [draw.gauss(2, 1)] + [math.log(0.03) + draw.gauss(0, 0.3) for _ in range(3)] + [1, 0, 0, 0])
for _ in range(0 if "near" in sys.argv else 2000):
    d, away = direction(), draw.uniform(*((3, 6) if "room" in sys.argv else (25, 120)))
    colour = [(0.5 + 0.3 * math.sin(9 * d[i] + 4 * d[(i + 1) % 3]) - 0.5) / 0.28209479 for i in range(3)]
    rows.append([away * c for c in d] + colour + [draw.gauss(2, 1)] + [math.log(0.05 * away) + draw.gauss(0, 0.3) for _ in range(3)] + [1, 0, 0, 0])
for x in sys.argv[2:]:
    if x not in ("near", "room"):
        rows.append([float(x)] + rows[0][1:])
names = ["x", "y", "z", "f_dc_0", "f_dc_1", "f_dc_2", "opacity", "scale_0", "scale_1", "scale_2", "rot_0", "rot_1", "rot_2", "rot_3"]
with open(sys.argv[1] + "/scene.ply", "wb") as f:
    f.write(("ply\nformat binary_little_endian 1.0\nelement vertex %d\n" % len(rows)).encode())
    f.write("".join("property float %s\n" % n for n in names).encode() + b"end_header\n")
    for r in rows:
        f.write(struct.pack("<14f", *r))
cameras = []
for i in range(13):
    a, up = 2 * math.pi * i * 5 / 13, (-0.2, 0.3, 0.1)[i % 3]
    z = [-math.cos(a) * math.cos(up), math.sin(up), -math.sin(a) * math.cos(up)]
    s = math.hypot(z[2], z[0])
    x = [z[2] / s, 0, -z[0] / s]
    y = [z[1] * x[2] - z[2] * x[1], z[2] * x[0] - z[0] * x[2], z[0] * x[1] - z[1] * x[0]]
    cameras.append({"id": i, "img_name": ("test/%d" if i % 4 == 3 else "train/%d") % i, "width": 160, "height": 120, "fx": 130, "fy": 130,
                    "position": [-3 * c for c in z], "rotation": [[x[r], y[r], z[r]] for r in range(3)]})
json.dump(cameras, open(sys.argv[1] + "/cameras.json", "w"))
