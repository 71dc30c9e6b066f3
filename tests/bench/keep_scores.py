#!/usr/bin/env python3
"""keep_scores.py [--build FOLDER] [--only SCORE,...] SCENE... -- which score tells best what to keep: of each score the three quarters, the
half and the quarter of the rows that have most of it, in dB of the test views against their photos: mean (least view) [mean of the others].

A scene is a folder with one INRIA PLY, cameras and photos, of which some are for tests, or one of these names: chair (of SHARED/scenes),
demo (kiln-generate, 60,000 Gaussians, 24 cameras, each fourth for tests), unbounded (of SHARED/bench; its photos are drawings of all
rows). Needs numpy. Never fails by a figure."""
import argparse, ctypes, json, os, pathlib, re, shutil, sqlite3, subprocess, sys, tempfile

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHARED = pathlib.Path(os.environ.get("SHARED", ROOT.parent / "shared"))
parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("scenes", nargs="+", metavar="SCENE")
parser.add_argument("--build", default=str(ROOT / "build/bin"), metavar="FOLDER")
parser.add_argument("--only", default="")
o = parser.parse_args()
scratch = pathlib.Path(tempfile.mkdtemp(prefix="kiln-keep-scores-"))
OFF = ("--max-spacing", "off", "--max-extent", "off")
zstd = ctypes.CDLL("libzstd.so.1").ZSTD_decompress
zstd.restype, zstd.argtypes = ctypes.c_size_t, [ctypes.c_char_p, ctypes.c_size_t] * 2


def kiln(program, *args):
    made = subprocess.run([f"{o.build}/kiln-{program}", *map(str, args), "--quiet"], capture_output=True, text=True)
    if made.returncode:
        sys.exit(f"kiln-{program}: {made.stderr.strip()}")
    return made.stdout


def bake(folder, db, *rules):
    kiln("import", folder, db), kiln("knn", db), kiln("prune", db, *OFF, *rules)


# ---- scenes ------------------------------------------------------------------------------------------------------------------------
def rename(folder, is_test):
    """Cameras and their photos, so that names say which are for tests."""
    text = (folder / "cameras.json").read_text()
    for i, name in enumerate(re.findall(r'"(?:img_)?name": "([^"]+)"', text)):
        to = f"{'test' if is_test(i) else 'train'}/{os.path.basename(name)}"
        text = text.replace(f'"{name}"', f'"{to}"')
        for old in (folder / f"images/{name}.png", folder / f"{name}.png"):
            if old.exists():
                (folder / to).parent.mkdir(exist_ok=True)
                old.rename(folder / f"{to}.png")
    (folder / "cameras.json").write_text(text)


def unbounded(folder):
    folder.mkdir()
    subprocess.run([sys.executable, str(SHARED / "bench/unbounded.py"), str(folder / "scene.ply")], check=True, capture_output=True)
    cameras = []
    for split, name in (("train", "train"), ("test", "eval")):
        for i, c in enumerate(json.loads((SHARED / f"bench/unbounded.{name}.json").read_text())):
            R, t = np.array(c["R"]).reshape(3, 3), np.array(c["t"])
            cameras.append({"id": len(cameras), "img_name": f"{split}/v_{i}", "position": (-R.T @ t).tolist(), "rotation": R.T.tolist(),
                            **{k: c[k] for k in ("width", "height", "fx", "fy")}})
    (folder / "cameras.json").write_text(json.dumps(cameras))
    db = scratch / "unbounded.db"
    bake(folder, db), kiln("chunk", db), kiln("render", db, "-o", f"{folder}/")


def find_scene(name):
    folder = scratch / "scene"
    shutil.rmtree(folder, ignore_errors=True)
    if name == "chair":
        return SHARED / "scenes/chair"
    if name == "demo":
        kiln("generate", "demo", folder, "--gaussians", 60000, "--cameras", 24, "--size", "480x270"), rename(folder, lambda i: i % 4 == 0)
    elif name == "unbounded":
        unbounded(folder)
    else:
        return pathlib.Path(name)
    return folder


# ---- scores ------------------------------------------------------------------------------------------------------------------------
def seen(path):
    """Sums of alpha T and of alpha, largest alpha T, of each row: what the units of kiln-prune have stored (prune_units.h)."""
    db, blocks = sqlite3.connect(path), {}
    for name, elem, raw, packed in db.execute(
            "SELECT o.name, blob.elem, blob.raw_bytes, packed FROM unit_output o JOIN unit ON unit.id = unit JOIN blob ON blob.hash = o.hash "
            "WHERE stage = 'prune' AND unit.name LIKE 'views %'"):
        shuffled, data = ctypes.create_string_buffer(raw + 1), bytearray(raw)
        assert zstd(shuffled, raw, packed, len(packed)) == raw
        for b in range(elem):
            data[b::elem] = shuffled.raw[b * (raw // elem):(b + 1) * (raw // elem)]
        n = raw // 20
        weights, alphas, peaks = (np.frombuffer(data, t, n, at).astype(float) for t, at in (("<u8", 0), ("<u8", 8 * n), ("<u4", 16 * n)))
        old = blocks.get(name, (0, 0, 0))
        blocks[name] = old[0] + weights, old[1] + alphas, np.maximum(old[2], peaks)
    return (np.concatenate([blocks[k][i] for k in sorted(blocks)]) / 2**24 for i in range(3))


def scores_of(data, db):
    weights, alphas, peaks = seen(db)
    opacity = 1 / (1 + np.exp(-data["opacity"].astype(float)))
    scales = np.sort(np.exp(np.stack([data[f"scale_{i}"] for i in range(3)], 1).astype(float)), 1)
    return {"peak": peaks, "sum": weights, "opacity": opacity, "opacity area": opacity * scales[:, 2] * scales[:, 1],
            "peak sum": peaks * weights, "peak^2 sum": peaks**2 * weights, "peak^3 sum": peaks**3 * weights,
            "peak^4 sum": peaks**4 * weights, "peak^2 alpha": peaks**2 * alphas, "peak^3 alpha": peaks**3 * alphas,
            "sum alpha": weights * alphas, "peak^2 visibility": peaks**2 * weights / np.maximum(alphas, 1e-9)}


def measure(folder, head, data):
    part = scratch / "part"
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir()
    for f in folder.iterdir():
        if f.suffix != ".ply":
            (part / f.name).symlink_to(f.resolve())
    (part / "scene.ply").write_bytes(re.sub(rb"element vertex \d+", b"element vertex %d" % len(data), head) + b"end_header\n" + data.tobytes())
    bake(part, part / "m.db"), kiln("chunk", part / "m.db")
    background = "white" if folder.name == "chair" else "black"
    views = json.loads(kiln("render", part / "m.db", "--json", "--background", background))["views"]
    test, train = ([v["psnr"] for v in views if v["psnr"] is not None and (v["split"] == "test") == is_test] for is_test in (True, False))
    return "%.2f (%.2f)%s" % (np.mean(test), np.min(test), " [%.2f]" % np.mean(train) if train else "")


for scene in o.scenes:
    folder, db = find_scene(scene), scratch / "all.db"
    head, body = next(folder.glob("*.ply")).read_bytes().split(b"end_header\n", 1)
    data = np.frombuffer(body, [(n, "<f4") for n in re.findall(r"property float (\w+)", head.decode())])
    db.unlink(missing_ok=True)
    bake(folder, db, "--keep", "50%", "--min-visibility", 0)
    print(f"{scene}: all {len(data)} rows {measure(folder, head, data)} dB", flush=True)
    for name, score in scores_of(data, db).items():
        if o.only and name not in o.only.split(","):
            continue
        order = np.argsort(-score, kind="stable")
        kept = [np.sort(order[:round(len(data) * share)]) for share in (0.75, 0.5, 0.25)]
        print(f"{scene}: {name}:", *(measure(folder, head, data[rows]) for rows in kept), flush=True)
shutil.rmtree(scratch)
