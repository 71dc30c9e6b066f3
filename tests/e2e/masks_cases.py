"""The python of tests/e2e/masks.t: `py FUNCTION [argument...]` of tests/cases.sh calls one of these."""
import json, os, shutil, sqlite3, sys
import picture


def masks():
    w, h, pixels = picture.read_png("s/cam1.png")
    to8 = lambda p: tuple(round(255 * v) for v in p[:3])
    picture.write_png("s/cam1.png", w, h, [(255, 0, 255) if i % w < w // 2 else to8(p) for i, p in enumerate(pixels)])
    half = [(0, 0, 0) if i % w < w // 2 else (255, 255, 255) for i in range(w * h)]
    picture.write_png("half.png", w, h, half)
    picture.write_png(
        "small.png", w // 2, h // 2, [(0, 0, 0) if i % (w // 2) < w // 4 else (1, 0, 0) for i in range(w * h // 4)]
    )
    picture.write_png("black.png", w, h, [(0, 0, 0)] * (w * h))
    picture.write_png("wide.png", w, h // 4, [(255, 255, 255)] * (w * (h // 4)))


def as_before(root):
    d = sqlite3.connect("m/m.db")
    first = open(root + "/schema/manifest.sql").read().split("\n-- VERSION 2")[0]  # schema version 1
    view = first[first.index("CREATE VIEW digest_line") : first.index("-- LATER TABLES")]
    d.executescript(
        "DROP TABLE photo_mask; DROP TABLE level_error; DROP TABLE level_origin; DROP VIEW digest_line; "
        "PRAGMA user_version = 1;"
        + view
    )
    d.commit()


def nerfstudio():
    cams = json.load(open("s/cameras.json"))
    os.makedirs("n/images_2"), os.makedirs("n/masks_2"), os.makedirs("n/masks")
    shutil.copy("s/cam1.png", "n/images_2/cam1.png")
    shutil.copy("half.png", "n/masks_2/m.png")
    shutil.copy("black.png", "n/masks/m.png")
    shutil.copy(
        [f for f in os.listdir("s") if f.endswith(".ply")][0]
        if os.path.exists("x")
        else "s/" + [f for f in os.listdir("s") if f.endswith(".ply")][0],
        "n/scene.ply",
    )
    c = next(c for c in cams if c["name"] == "cam1")
    R, t = c["R"], c["t"]
    R = [R[3 * i : 3 * i + 3] for i in range(3)] if not isinstance(R[0], list) else R
    centre = [-sum(R[k][i] * t[k] for k in range(3)) for i in range(3)]
    m = [[R[0][i], -R[1][i], -R[2][i], centre[i]] for i in range(3)] + [[0, 0, 0, 1]]
    json.dump(
        {
            "fl_x": 2 * c["fx"],
            "fl_y": 2 * c["fy"],
            "cx": 2 * c["cx"],
            "cy": 2 * c["cy"],
            "w": 2 * c["width"],
            "h": 2 * c["height"],
            "frames": [{"file_path": "images/cam1.png", "mask_path": "masks/m.png", "transform_matrix": m}],
        },
        open("n/transforms.json", "w"),
    )


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
