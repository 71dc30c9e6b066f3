"""The python of tests/e2e/cameras.t: `py FUNCTION [argument...]` of tests/cases.sh calls one of these."""
import json, math, os, shutil, sys


def data_set():
    os.makedirs("ns/images")
    shutil.copy("s/scene.ply", "ns/splat.ply")
    c, s = math.cos(0.7), math.sin(0.7)
    T = [[c, 0, -s, 0.3], [s, 0, c, -0.2], [0, -1, 0, 0.1]]  # after applied_transform, as nerfstudio writes it
    A = [[1, 0, 0, 0], [0, 0, 1, 0], [0, -1, 0, 0]]  # its own inverse is its transpose
    scale = 0.23
    R = [[sum(T[i][j] * A[k][j] for j in range(3)) for k in range(3)] for i in range(3)]  # saved to trained
    t = [T[i][3] for i in range(3)]
    frames, path = [], []
    for cam in json.load(open("s/cameras.json")):
        shutil.copy("m/renders/%s.png" % cam["name"], "ns/images")
        r = [cam["R"][3 * i : 3 * i + 3] for i in range(3)]
        centre = [-sum(r[k][i] * cam["t"][k] for k in range(3)) for i in range(3)]  # in the world of training
        saved = [sum(R[k][i] * (centre[k] / scale - t[k]) for k in range(3)) for i in range(3)]
        axes = [
            [sum(R[k][i] * r[j][k] for k in range(3)) for j in range(3)] for i in range(3)
        ]  # columns: right, down, forward
        sign = (1, -1, -1)
        frames.append(
            {
                "file_path": "images/%s.png" % cam["name"],
                "transform_matrix": [[axes[i][j] * sign[j] for j in range(3)] + [saved[i]] for i in range(3)]
                + [[0, 0, 0, 1]],
            }
        )
        path.append(
            {
                "camera_to_world": [v for i in range(3) for v in [r[j][i] * sign[j] for j in range(3)] + [centre[i]]]
                + [0, 0, 0, 1],
                "fov": 2 * math.degrees(math.atan(cam["height"] / 2 / cam["fy"])),
                "aspect": 1.5,
            }
        )
        lens = {
            "fl_x": cam["fx"],
            "fl_y": cam["fy"],
            "cx": cam["cx"],
            "cy": cam["cy"],
            "w": cam["width"],
            "h": cam["height"],
        }
    json.dump(
        dict(lens, applied_transform=A, frames=frames, test_filenames=["images/cam1.png"]),
        open("ns/transforms.json", "w"),
    )
    json.dump({"transform": T, "scale": scale}, open("ns/dataparser_transforms.json", "w"))
    json.dump(
        {"camera_type": "perspective", "render_height": 64, "render_width": 96, "camera_path": path, "keyframes": []},
        open("path.json", "w"),
    )


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
