"""tensors -- a bake as gsplat takes it: Gaussians, cameras and tile lists, as numpy arrays or as torch tensors on a device."""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Iterable, Optional

import numpy as np

from splatkiln.arrays import Array
from splatkiln.errors import require
from splatkiln.layers import Layer
from splatkiln.tables import TileTable

if TYPE_CHECKING:
    from splatkiln.bake import Bake


@dataclass
class Tensors:
    """What gsplat.rasterization takes, float32, of N Gaussians and C cameras. Positions and poses are relative to the scene's
    origin. Gaussians are in the order of the source's rows, in which gsplat draws those of equal depth."""
    means: Any  # [N, 3] scene units
    quats: Any  # [N, 4] w x y z, of length 1
    scales: Any  # [N, 3] standard deviations, linear
    opacities: Any  # [N] 0 to 1
    colors: Any  # [N, K, 3] coefficients, K = (sh_degree + 1)^2: to be given with sh_degree
    sh_degree: int
    viewmats: Any  # [C, 4, 4] world to camera; x right, y down, z forward
    Ks: Any  # [C, 3, 3] pixels; the centre of the first pixel is (0.5, 0.5)
    cameras: list[str]  # names, for viewmats and Ks
    sizes: list[tuple[int, int]]  # width and height, in pixels, of each camera
    source_rows: Array  # int64 [N]: row in the source
    _place: Array = field(repr=False)  # int64 [N]: row of these tensors for each row of the layer
    _layer: Layer = field(repr=False)
    _device: Any = field(repr=False)

    def rows(self, table: TileTable) -> Any:
        """The Gaussians that the table's camera sees, nearest first, as rows of these tensors: int64 [visible]. BakeError: the table is
        of another layer."""
        return to_device(self._place[table.visible_rows(self._layer)], self._device)

    def isect(self, table: TileTable) -> tuple[Any, Any]:
        """isect_offsets int32 [1, tiles_y, tiles_x] and flatten_ids int32 [pairs], whose numbers are rows of these tensors: what
        gsplat.rasterize_to_pixels takes of all N Gaussians and this one camera."""
        rows = self._place[table.visible_rows(self._layer)].astype(np.int32)
        return to_device(table.isect_offsets, self._device), to_device(rows[table.flatten_ids], self._device)


def to_device(a: Array, device: Any) -> Any:
    """The array itself for device None, else a torch tensor there."""
    if device is None:
        return a
    import torch
    return torch.from_numpy(np.require(a, requirements=["C", "W"])).to(device)


def make_tensors(bake: Bake, layer: Layer, device: Any, names: Optional[Iterable[str]]) -> Tensors:
    """As Bake.tensors."""
    names = list(bake.cameras if names is None else names)
    for name in names:
        require(name in bake.cameras, f"'{bake.path}' has no camera '{name}'")
    cameras, g = [bake.cameras[name] for name in names], layer.all_gaussians()
    source_rows = layer.all_planes("source_row").astype(np.int64)
    order = np.argsort(source_rows, kind="stable")
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))

    def put(a: Array) -> Any:
        return to_device(np.ascontiguousarray(a, np.float32), device)

    viewmats = np.array([c.viewmat(bake.scene.origin) for c in cameras]).reshape(-1, 4, 4)
    return Tensors(put(g.means[order]), put(g.quats[order]), put(g.scales[order]), put(g.opacities[order]), put(g.sh[order]), layer.sh_degree,
                   put(viewmats), put(np.array([c.K for c in cameras]).reshape(-1, 3, 3)), names, [(c.width, c.height) for c in cameras],
                   source_rows[order], place, layer, device)
