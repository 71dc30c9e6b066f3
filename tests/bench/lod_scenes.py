"""The scenes of lod_views.py and decimate: chair, object, guitar (of SHARED/scenes), demo (kiln-generate), unbounded (of SHARED/bench,
needs numpy). What has no cameras of its own gets 40 on three rings about it, every eighth for tests."""
import json, math, os, pathlib, shutil, struct, subprocess, sys


def kiln(folder, program, *args):
    made = subprocess.run([str(pathlib.Path(folder) / ("kiln-" + program)), *map(str, args), "--quiet"], capture_output=True, text=True)
    if made.returncode:
        sys.exit("kiln-%s %s: %s" % (program, " ".join(map(str, args)), made.stderr.strip()))
    return made.stdout


def rows_of(ply):
    data = ply.read_bytes()
    head, body = data.split(b"end_header\n", 1)
    names = [l.split()[2] for l in head.decode().splitlines() if l.startswith("property float ")]
    n = int([l.split()[2] for l in head.decode().splitlines() if l.startswith("element vertex")][0])
    row, at = struct.Struct("<%df" % len(names)), [names.index(c) for c in "xyz"]
    return [tuple(r[i] for i in at) for r in row.iter_unpack(body[:n * row.size])]


def camera(name, width, height, fx, fy, position, axes):
    """axes: right, down, forward in world coordinates; inria's file has them as columns."""
    return dict(id=0, img_name=name, width=width, height=height, fx=fx, fy=fy, position=list(position),
                rotation=[[axes[c][r] for c in range(3)] for r in range(3)])


def rings(ply):
    axes = [sorted(v) for v in zip(*rows_of(ply))]
    lo, hi = [a[len(a) // 20] for a in axes], [a[len(a) - 1 - len(a) // 20] for a in axes]
    centre = [(l + h) / 2 for l, h in zip(lo, hi)]
    radius = 1.6 * math.sqrt(sum((h - l) ** 2 for l, h in zip(lo, hi))) / 2 / math.tan(0.35) * 0.8
    made = []
    for i in range(40):
        a, up = 2 * math.pi * i / 40 * 3, (-0.35, 0.15, 0.6)[i % 3]
        p = [math.cos(a) * math.cos(up), -math.sin(up), math.sin(a) * math.cos(up)]  # -y is up
        z = [-c for c in p]
        s = math.hypot(z[2], z[0])
        x = [z[2] / s, 0.0, -z[0] / s]
        y = [z[1] * x[2] - z[2] * x[1], z[2] * x[0] - z[0] * x[2], z[0] * x[1] - z[1] * x[0]]
        focal = 240 / math.tan(0.35)
        made.append(camera("view_%02d" % i, 480, 480, focal, focal, [c + radius * d for c, d in zip(centre, p)], (x, y, z)))
    return made


def posed(file, prefix):
    """The cameras of bench/unbounded.*.json, poses from the world to the camera."""
    made = []
    for c in json.loads(file.read_text()):
        r, t = [c["R"][3 * i:3 * i + 3] for i in range(3)], c["t"]
        made.append(camera(prefix + c["name"], c["width"], c["height"], c["fx"], c["fy"],
                           [-sum(r[i][j] * t[i] for i in range(3)) for j in range(3)], r))
    return made


def make_scene(name, folder, build, shared):
    """Makes the folder of a scene, with its Gaussians as scene.ply and cameras, unless it is there; of a path a link to it."""
    if folder.exists():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    if pathlib.Path(name).exists():
        os.symlink(pathlib.Path(name).resolve(), folder)
        return folder
    made = folder.with_name("source.new")
    shutil.rmtree(made, ignore_errors=True)
    made.mkdir()
    files = {"object": "object_60634.splat", "guitar": "guitar_90854.compressed.ply"}
    if name == "chair":
        shutil.copy(shared / "scenes/chair/chair.ply", made / "scene.ply")
        shutil.copy(shared / "scenes/chair/cameras.json", made / "cameras.json")
    elif name in files:
        plain = made / "plain.db"
        kiln(build, "import", shared / "scenes/files" / files[name], plain)
        kiln(build, "export", plain, "--layer", "source", "--format", "ply", "-o", made / "scene.ply")
        plain.unlink()
        (made / "cameras.json").write_text(json.dumps(rings(made / "scene.ply")))
    elif name == "demo":
        kiln(build, "generate", "demo", made, "-n", 120000, "-c", 40)
    elif name == "unbounded":
        subprocess.run(["/usr/bin/python3", shared / "bench/unbounded.py", made / "scene.ply"], check=True, stdout=subprocess.DEVNULL)
        (made / "cameras.json").write_text(json.dumps(posed(shared / "bench/unbounded.train.json", "train/") +
                                                      posed(shared / "bench/unbounded.eval.json", "test/")))
    else:
        sys.exit("there is no scene '%s'" % name)
    made.rename(folder)
    return folder
