"""two_places.py FOLDER -- a scene of two heaps of Gaussians 200 units apart. Eight cameras, of which those of even names see the one
heap and those of odd names the other: in the order of their names they take turns."""
import json
import os
import random
import struct
import sys

N, APART = 4000, 100.0
folder = sys.argv[1]
os.makedirs(folder)
random.seed(3)
names = "x y z f_dc_0 f_dc_1 f_dc_2 opacity scale_0 scale_1 scale_2 rot_0 rot_1 rot_2 rot_3".split()
with open(folder + "/scene.ply", "wb") as f:
    f.write(f"ply\nformat binary_little_endian 1.0\nelement vertex {N}\n".encode())
    f.write("".join(f"property float {n}\n" for n in names).encode() + b"end_header\n")
    for i in range(N):
        place = [random.uniform(-1, 1) for _ in range(3)]
        place[0] += APART if i % 2 else -APART
        f.write(struct.pack("<14f", *place, 0.5, 0.1, -0.3, 2, -3, -3, -3, 1, 0, 0, 0))
cameras = [{"name": f"cam{i}", "R": [1, 0, 0, 0, 1, 0, 0, 0, 1], "t": [-APART if i % 2 else APART, i / 100, 5], "fx": 60, "fy": 60,
            "cx": 32, "cy": 24, "width": 64, "height": 48} for i in range(8)]
with open(folder + "/cameras.json", "w") as f:
    json.dump(cameras, f)
