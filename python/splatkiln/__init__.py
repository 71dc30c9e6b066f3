"""splatkiln -- reads and draws bakes of 3D Gaussian Splatting scenes, and computes what a trainer needs of its kernels.

    import splatkiln
    with splatkiln.open("scene/bake/manifest.db") as bake:
        t = bake.tensors()                             # t.means [N, 3], t.quats, t.scales, t.opacities, t.colors, t.viewmats, t.Ks
        picture = bake.draw("test/r_0")                # float32 [height, width, 4], the bits of kiln-render
        table = bake.tile_table("test/r_0")            # which Gaussians touch which tile, if kiln-tiles made it
        for chunk in bake.layer().chunks:
            g = bake.layer().gaussians(chunk)          # g.means [n, 3], g.scales, g.quats, g.opacities, g.sh

docs/python.md has the rest. Only numpy is needed; torch is used where tensors are asked for or given. A manifest may be a stranger's:
what is read is checked as schema/SCHEMA.md asks, and what is wrong raises BakeError.
"""
from splatkiln.bake import Bake, open_bake as open
from splatkiln.drawing import PROFILES
from splatkiln.errors import BakeError, LibraryError
from splatkiln.files import Points, Splats, checkpoint, read, write
from splatkiln.install import install
from splatkiln.layers import Camera, Chunk, Gaussians, Layer, Plane, sigmoid
from splatkiln.native import library
from splatkiln.operations import distCUDA2, fused_ssim, fused_ssim3d, psnr_ssim, ssim_gradient
from splatkiln.tables import TILE, Band, TileTable
from splatkiln.tensors import Tensors

__version__ = "0.1.0"
__all__ = ["PROFILES", "TILE", "Band", "Bake", "BakeError", "Camera", "Chunk", "Gaussians", "Layer", "LibraryError", "Plane", "Points", "Splats", "Tensors", "TileTable",
           "checkpoint", "distCUDA2", "fused_ssim", "fused_ssim3d", "install", "library", "open", "psnr_ssim", "read", "sigmoid", "ssim_gradient",
           "write"]
