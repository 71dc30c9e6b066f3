"""drawing -- a picture by libsplatkiln, with the bits of kiln-render."""
from __future__ import annotations

import ctypes
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Optional, Sequence

import numpy as np

from splatkiln.arrays import Array
from splatkiln.errors import BakeError, LibraryError, require
from splatkiln.layers import GAUSSIAN, Camera, Layer
from splatkiln.native import needed, threads

PROFILES = ("inria", "gsplat-1.5", "gsplat-1.6")
PLAIN = GAUSSIAN + ("shN", "source_row")  # the order of kernels/draw/plain.h


@dataclass
class Look:
    """How a picture is made, besides its camera: the arguments of Bake.draw."""
    profile: str
    antialiased: bool
    near: float
    background: Optional[Sequence[float]]
    device: int
    threads: int


def _f64(*parts: Any) -> Array:
    return np.ascontiguousarray(np.concatenate([np.ravel(x) for x in parts]), np.float64)


def _fail(code: int, sentence: str) -> None:
    if code == 5:
        raise MemoryError(sentence)
    raise LibraryError(sentence, code) if code in (6, 70) else BakeError(sentence)


def _p(a: Array) -> ctypes.c_void_p:
    return ctypes.c_void_p(a.ctypes.data)


class _Painter:
    """A painter of kernels/draw/plain.h with a scene; it keeps what that points to."""

    def __init__(self, look: Look, origin: Array, sh_degree: int, chunks: list[list[Optional[Array]]]) -> None:
        self._lib, number = needed("drawing"), ctypes.c_uint32
        self._lib.kiln_plain_new.restype, self._lib.kiln_plain_message.restype = ctypes.c_void_p, ctypes.c_char_p
        self._painter = ctypes.c_void_p(self._lib.kiln_plain_new(ctypes.c_int(look.device), ctypes.c_uint(look.threads or threads())))
        if not self._painter:
            raise MemoryError("out of memory")
        rows = (ctypes.c_uint64 * len(chunks))(*[c[-1].size for c in chunks if c[-1] is not None])
        planes = (ctypes.c_void_p * (len(PLAIN) * len(chunks)))(*[a.ctypes.data if a is not None else None for c in chunks for a in c])
        self._kept = origin, rows, planes, chunks
        self.call("scene", _p(origin), number(sh_degree), number(len(chunks)), rows, planes)

    def call(self, name: str, *args: object) -> None:
        """kiln_plain_NAME; its failure is raised."""
        code = getattr(self._lib, f"kiln_plain_{name}")(self._painter, *args)
        if code != 0:
            _fail(code, self._lib.kiln_plain_message(self._painter).decode(errors="replace"))

    def __del__(self) -> None:
        if getattr(self, "_painter", None):
            self._lib.kiln_plain_free(self._painter)


class Kept:
    """The planes of one layer that drawing reads, and a painter that has them, kept for the next picture."""

    def __init__(self) -> None:
        self._of: object = None
        self._digest = b""
        self._chunks: list[list[Optional[Array]]] = []
        self._painter: Optional[_Painter] = None

    def _planes(self, layer: Layer) -> list[list[Optional[Array]]]:
        """For each chunk its planes in the order of PLAIN."""
        if self._digest != layer.digest:
            self._chunks = [[layer.plane(c, name) if name != "shN" or layer.sh_degree > 0 else None for name in PLAIN] for c in layer.chunks if c.count]
            self._digest = layer.digest
        return self._chunks

    def painter(self, scene: SimpleNamespace, layer: Layer, look: Look) -> _Painter:
        """The last one, if it is on that device and has that layer."""
        of = layer.digest, look.device, look.threads
        if self._of != of or self._painter is None:
            self._painter = None
            self._painter, self._of = _Painter(look, _f64(scene.origin), layer.sh_degree, self._planes(layer)), of
        return self._painter

    def forget(self) -> None:
        """After a failure: that of a GPU ends a painter."""
        self._painter = None


def draw(scene: SimpleNamespace, layer: Layer, camera: Camera, look: Look, kept: Kept) -> Array:
    """float32 [height, width, 4]: as Bake.draw."""
    wanted = look.background if look.background is not None else scene.background
    background = np.ascontiguousarray(np.zeros(3) if wanted is None else wanted, np.float32)
    pose, lens = _f64(camera.R, camera.t), _f64([camera.fx, camera.fy, camera.cx, camera.cy])
    require((pose.size, background.size) == (12, 3), "a pose has 12 numbers and a background 3")
    rgba = np.empty((camera.height, camera.width, 4), np.float32)
    painter = kept.painter(scene, layer, look)
    try:
        painter.call("renderer", look.profile.encode(), ctypes.c_int(look.antialiased), ctypes.c_float(look.near))
        painter.call("camera", _p(pose), _p(lens), ctypes.c_uint32(camera.width), ctypes.c_uint32(camera.height))
        painter.call("draw", _p(background), _p(rgba), None)
    except BaseException:
        kept.forget()
        raise
    return rgba
