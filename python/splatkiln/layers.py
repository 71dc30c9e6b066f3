"""layers -- cameras, and the Gaussians and points of a bake, chunk by chunk."""
from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Optional, Sequence

import numpy as np

from splatkiln.arrays import Array
from splatkiln.database import Database
from splatkiln.errors import require

TYPES = {"u8": "u1", "i8": "i1", "u16": "<u2", "i16": "<i2", "u32": "<u4", "i32": "<i4", "f32": "<f4", "f64": "<f8"}
# Type and components of the planes that this package knows; those of shN follow from the degree.
PLANES = {"means": ("f32", 3), "log_scales": ("f32", 3), "quats": ("f32", 4), "opacity_logits": ("f32", 1), "sh0": ("f32", 3),
          "shN": ("f32", None), "source_row": ("u32", 1), "spacing2": ("f32", 1), "rgb": ("f32", 3),
          "visibility": ("f32", 1), "weights": ("f32", 1), "source_last": ("u32", 1), "source_count": ("u32", 1)}
GAUSSIAN = ("means", "log_scales", "quats", "opacity_logits", "sh0")


@dataclass
class Camera:
    """x_camera = R x_world + t; x right, y down, z forward; the centre of the first pixel is (0.5, 0.5)."""
    name: str
    R: Array  # float64 [3, 3]
    t: Array  # float64 [3]
    width: int
    height: int
    fx: float
    fy: float
    cx: float
    cy: float
    model: str
    params: Array  # float64: COLMAP's, of the photo's lens where `distorted`
    distorted: bool
    synthetic: bool
    split: str

    @property
    def K(self) -> Array:
        """Pinhole intrinsics in pixels: float64 [3, 3]."""
        return np.array([[self.fx, 0, self.cx], [0, self.fy, self.cy], [0, 0, 1.0]])

    def viewmat(self, origin: Sequence[float]) -> Array:
        """World to camera for coordinates relative to the scene's origin, as planes have them: float64 [4, 4]."""
        m = np.eye(4)
        m[:3, :3], m[:3, 3] = self.R, self.R @ np.asarray(origin) + self.t
        return m


@dataclass
class Plane:
    name: str
    type: str
    components: int
    raw_bytes: int
    segments: list[tuple[bytes, Optional[int]]] = field(repr=False)  # (hash, None)


@dataclass
class Chunk:
    name: str
    parent: str
    count: int
    level: int
    hilbert: tuple[int, int]
    box_min: Array
    box_max: Array
    reach_min: Array  # outside of it no Gaussian of the chunk reaches alpha 1/255
    reach_max: Array
    max_log_scale: float
    max_opacity_logit: float
    planes: dict[str, Plane] = field(repr=False)
    error_step: int = 0  # of the layer "levels": errors[i] is that of a footprint of 2^(error_step + i) scene units
    errors: Array = field(default_factory=lambda: np.empty(0, np.float32))


def sigmoid(x: Array) -> Array:
    """1 / (1 + exp(-x)) without overflow."""
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + e), e / (1 + e)).astype(x.dtype)


@dataclass
class Gaussians:
    """Activated parameters of n Gaussians, float32. The colour that is seen along a unit vector v, from the camera to the mean, is
    max(0, 0.5 + the sum over k of Y_k(v) sh[:, k])."""
    means: Array  # [n, 3], scene units, relative to the scene's origin
    scales: Array  # [n, 3], standard deviations in scene units
    quats: Array  # [n, 4], w x y z, of length 1
    opacities: Array  # [n], 0 to 1
    sh: Array  # [n, (sh_degree + 1)^2, 3], r g b


class Layer:
    """Chunks (or blocks) in order, with their planes. kind, digest (16 bytes), count, sh_degree, chunks. Of levels also origin: baked (the
    digest of the layer whose chunks they stand for), and profile, antialiased, near, with which their errors were measured."""

    def __init__(self, db: Database, kind: str, digest: bytes, count: int, sh_degree: int, chunks: list[Chunk], most_source_rows: int,
                 origin: Optional[SimpleNamespace] = None) -> None:
        self.kind, self.digest, self.count, self.sh_degree, self.chunks, self.origin = kind, digest, count, sh_degree, chunks, origin
        self._db, self._most_source_rows = db, most_source_rows

    def plane(self, chunk: Chunk, name: str) -> Array:
        """A plane as it is stored, [components, rows], or [rows] of one component."""
        require(name in chunk.planes, f"chunk '{chunk.name}' has no plane '{name}'")
        p = chunk.planes[name]
        a: Array = self._db.array(p.segments, p.raw_bytes, TYPES[p.type]).reshape(p.components, chunk.count)
        self._check_values(chunk, name, a)
        return a if p.components > 1 else a.reshape(-1)

    def _check_values(self, chunk: Chunk, name: str, a: Array) -> None:
        if name not in PLANES:
            return
        where = f"plane '{name}' of chunk '{chunk.name}'"
        require(a.dtype.kind != "f" or np.isfinite(a).all(), f"{where} has a number that is not finite")
        require(name != "log_scales" or (a <= 88).all(), f"{where} has a scale above e^88")
        require(name != "quats" or a.any(axis=0).all(), f"{where} has a quaternion of zeros")
        require(name not in ("source_row", "source_last") or a.size == 0 or a.max() < self._most_source_rows, f"{where} names rows that the source lacks")

    def gaussians(self, chunk: Chunk) -> Gaussians:
        """The chunk's Gaussians, activated. BakeError: the layer has none (points have planes `means` and `rgb` alone)."""
        raw = {name: self.plane(chunk, name) for name in GAUSSIAN}
        sh = raw["sh0"].reshape(1, 3, chunk.count)
        if self.sh_degree > 0:
            sh = np.concatenate([sh, self.plane(chunk, "shN").reshape(-1, 3, chunk.count)])
        # The largest component first: tiny and huge quaternions have a length, too.
        quats = raw["quats"] / np.abs(raw["quats"]).max(axis=0)
        return Gaussians(means=np.ascontiguousarray(raw["means"].T), scales=np.exp(raw["log_scales"].T),
                         quats=np.ascontiguousarray((quats / np.linalg.norm(quats, axis=0)).T),
                         opacities=sigmoid(raw["opacity_logits"]), sh=np.ascontiguousarray(sh.transpose(2, 0, 1)))

    def all_planes(self, name: str) -> Array:
        """A plane of all chunks, one behind another: [components, count], or [count] of one component."""
        return np.concatenate([self.plane(c, name) for c in self.chunks if c.count] or [np.empty(0, np.float32)], axis=-1)

    def all_gaussians(self) -> Gaussians:
        """The Gaussians of all chunks, one behind another."""
        parts = [self.gaussians(c) for c in self.chunks if c.count]
        require(parts, f"the layer '{self.kind}' has no Gaussians")
        return Gaussians(*[np.concatenate([getattr(p, name) for p in parts]) for name in ("means", "scales", "quats", "opacities", "sh")])
