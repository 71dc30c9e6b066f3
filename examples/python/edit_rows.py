"""edit_rows -- bakes a scene, edits its Gaussians in numpy, writes them back as a PLY, and looks at the result.

    python3 edit_rows.py SCENE OUT.ply        SCENE: a file or folder that kiln imports

Each step stands by itself, to be pasted into a notebook.
"""
import pathlib
import sys
import tempfile

import numpy as np

import splatkiln
from splatkiln import program

scene, out = sys.argv[1:]

# 1. Bake it: import, distances, pruning, chunks.
folder = tempfile.TemporaryDirectory()
manifest = str(pathlib.Path(folder.name) / "manifest.db")
program.run(["import", scene, manifest])
for stage in ("knn", "prune", "chunk"):
    program.run([stage, manifest])

with splatkiln.open(manifest) as bake:
    camera = next(iter(bake.cameras))
    before = bake.draw(camera)
    layer = bake.layer()
    kept = np.sort(layer.all_planes("source_row"))
    print(f"{layer.count} of {bake.scene.rows_read} Gaussians are left in {len(layer.chunks)} chunks; camera {camera}: {before.shape}")

# 2. Edit rows of the source: those that the bake kept, without the faintest tenth, half as blue.
splats = splatkiln.read(scene)
splats = splats[kept] if kept.max(initial=0) < len(splats) else splats
splats = splats[splats.opacity_logits > np.quantile(splats.opacity_logits, 0.1)]
splats.sh0[:, 2] = 0.5 * splats.sh0[:, 2] - 0.25 / 0.28209479  # colour = 0.5 + 0.28209479 sh0
splats.shN[:, :, 2] *= 0.5

# 3. Write a PLY, read it again, and compare.
splatkiln.write(out, splats)
again = splatkiln.read(out)
assert len(again) == len(splats) and np.array_equal(again.sh0, splats.sh0)
print(f"{out}: {len(again)} Gaussians, SH degree {again.sh_degree}, {pathlib.Path(out).stat().st_size} bytes")
