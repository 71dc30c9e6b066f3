"""files -- reads and writes scene files of every format that kiln knows, as arrays of a Gaussian's parameters as they are trained.

A file is converted by the program kiln (`kiln convert`, or an import and an export where that command is not there) from or to a
binary PLY, which is read and written here. So formats, checks and sentences are kiln's. gsplat's checkpoint, the dictionary "splats",
is read and written as .npz by numpy, as .pt and .ckpt by torch.
"""
from __future__ import annotations

import os
import pathlib
import tempfile
import zipfile
import zlib
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Iterable, Optional, Sequence, Union

import numpy as np

from splatkiln import program
from splatkiln.arrays import Array
from splatkiln.errors import BakeError, require
from splatkiln.layers import Gaussians, sigmoid

Path = Union[str, os.PathLike[str]]
PLY_TYPES = {"char": "i1", "uchar": "u1", "short": "<i2", "ushort": "<u2", "int": "<i4", "uint": "<u4", "float": "<f4", "double": "<f8",
             "int8": "i1", "uint8": "u1", "int16": "<i2", "uint16": "<u2", "int32": "<i4", "uint32": "<u4", "float32": "<f4", "float64": "<f8"}


@dataclass
class Splats:
    """n Gaussians, as they are trained and stored: float32, not activated. Rows may be edited in place, or taken by splats[rows]."""
    means: Array  # [n, 3] scene units; float64 where the file's are
    log_scales: Array  # [n, 3] natural logarithms of standard deviations
    quats: Array  # [n, 4] w x y z, of any length but 0
    opacity_logits: Array  # [n]
    sh0: Array  # [n, 3]
    shN: Array  # [n, (sh_degree + 1)^2 - 1, 3]
    extra: dict[str, Array] = field(default_factory=dict)  # [n] each: columns of unknown meaning, by name

    def __len__(self) -> int:
        return len(self.means)

    def __getitem__(self, rows: Any) -> Splats:
        """Some of the rows, by what numpy takes as an index."""
        columns = {name: getattr(self, name)[rows] for name in _COLUMNS}
        return Splats(**columns, extra={k: v[rows] for k, v in self.extra.items()})

    @property
    def sh_degree(self) -> int:
        return int(round((self.shN.shape[1] + 1) ** 0.5)) - 1

    def check(self) -> None:
        """BakeError: a shape that does not fit, a degree above 4, or a value that is no number."""
        n = len(self.means)
        shapes = {"means": (n, 3), "log_scales": (n, 3), "quats": (n, 4), "opacity_logits": (n,), "sh0": (n, 3)}
        for name, shape in shapes.items():
            require(getattr(self, name).shape == shape, f"{name} is {list(getattr(self, name).shape)}, not {list(shape)}")
        require(self.shN.ndim == 3 and self.shN.shape in [(n, k * k - 1, 3) for k in range(1, 6)],
                f"shN is {list(self.shN.shape)}, not [{n}, 0 or 3 or 8 or 15 or 24, 3]")
        for name in _COLUMNS:
            require(getattr(self, name).dtype.kind == "f" and np.isfinite(getattr(self, name)).all(), f"{name} has a value that is no finite number")
        for name, values in self.extra.items():
            require(values.shape == (n,) and name.isascii() and name.isprintable() and name and " " not in name, f"the column '{name}' cannot be written")

    def activated(self) -> Gaussians:
        """As renderers take them."""
        return Gaussians(self.means, np.exp(self.log_scales), self.quats / np.linalg.norm(self.quats, axis=1, keepdims=True),
                         sigmoid(self.opacity_logits), np.concatenate([self.sh0[:, None], self.shN], axis=1))


_COLUMNS = ("means", "log_scales", "quats", "opacity_logits", "sh0", "shN")


@dataclass
class Points:
    """n points of a cloud that nobody has trained."""
    means: Array  # [n, 3] scene units
    rgb: Optional[Array]  # uint8 [n, 3], or None


# ---- PLY, as kiln writes it -------------------------------------------------------------------------------------------------------

def _read_ply(path: pathlib.Path) -> Array:
    """The vertices of a binary PLY without lists: a structured array."""
    with open(path, "rb") as f:
        head: list[bytes] = []
        while not head or head[-1] != b"end_header":
            line = f.readline(4096)
            require(line.endswith(b"\n") and len(head) < 4096, f"'{path}' has a head that is none of a PLY")
            head.append(line.strip())
        words = [line.decode("ascii", "replace").split() for line in head]
        require(words[0] == ["ply"] and ["format", "binary_little_endian", "1.0"] in words, f"'{path}' is no binary PLY")
        elements = [w for w in words if w[:1] == ["element"]]
        columns = [w for w in words if w[:1] == ["property"]]
        require(len(elements) == 1 and elements[0][1:2] == ["vertex"] and elements[0][2].isdigit(), f"'{path}' has other elements than vertices")
        require(all(len(w) == 3 and w[1] in PLY_TYPES for w in columns) and len({w[2] for w in columns}) == len(columns), f"'{path}' has columns that cannot be")
        row = np.dtype([(w[2], PLY_TYPES[w[1]]) for w in columns])
        n = int(elements[0][2])
        require(os.fstat(f.fileno()).st_size - f.tell() >= n * row.itemsize, f"'{path}' is cut off")
        return np.fromfile(f, row, n)


def _names(prefix: str, n: int) -> list[str]:
    return [f"{prefix}_{i}" for i in range(n)]


def _columns(rows: Array, names: Sequence[str]) -> Array:
    return np.stack([rows[name] for name in names], axis=-1) if names else np.empty((len(rows), 0), np.float32)


def _of_ply(path: pathlib.Path) -> Union[Splats, Points]:
    rows = _read_ply(path)
    there = list(rows.dtype.names or ())
    require({"x", "y", "z"} <= set(there), f"'{path}' has no x, y and z")
    means = _columns(rows, "xyz")
    if "opacity" not in there:
        return Points(means, _columns(rows, ["red", "green", "blue"]) if {"red", "green", "blue"} <= set(there) else None)
    k = sum(name.startswith("f_rest_") for name in there) // 3
    named = {"log_scales": _names("scale", 3), "quats": _names("rot", 4), "sh0": _names("f_dc", 3), "rest": _names("f_rest", 3 * k)}
    known = {"x", "y", "z", "nx", "ny", "nz", "opacity"}.union(*named.values())
    require(known - {"nx", "ny", "nz"} <= set(there), f"'{path}' lacks columns of Gaussians")
    shN = np.ascontiguousarray(_columns(rows, named["rest"]).reshape(len(rows), 3, k).transpose(0, 2, 1))  # a PLY has channel after channel
    splats = Splats(means, _columns(rows, named["log_scales"]), _columns(rows, named["quats"]), np.ascontiguousarray(rows["opacity"]),
                    _columns(rows, named["sh0"]), shN, {name: np.ascontiguousarray(rows[name]) for name in there if name not in known})
    splats.check()
    return splats


def _to_ply(path: pathlib.Path, s: Splats) -> None:
    k = s.shN.shape[1]
    parts = [(list("xyz"), s.means), (_names("f_dc", 3), s.sh0), (_names("f_rest", 3 * k), s.shN.transpose(0, 2, 1).reshape(len(s), 3 * k)),
             (["opacity"], s.opacity_logits[:, None]), (_names("scale", 3), s.log_scales), (_names("rot", 4), s.quats)]
    words = {np.dtype(v).newbyteorder("="): k for k, v in PLY_TYPES.items() if not k[-1].isdigit()}
    columns = [(name, np.dtype("<f8" if values.dtype == np.float64 and name in "xyz" else "<f4"), values[:, i]) for names, values in parts for i, name in enumerate(names)]
    columns += [(name, values.dtype.newbyteorder("<"), values) for name, values in s.extra.items()]
    require(all(np.dtype(t).newbyteorder("=") in words for _, t, _ in columns), "a column has a type that a PLY has not")
    rows = np.empty(len(s), [(name, t) for name, t, _ in columns])
    for name, _, values in columns:
        rows[name] = values
    head = "".join(f"property {words[np.dtype(t).newbyteorder('=')]} {name}\n" for name, t, _ in columns)
    with open(path, "wb") as f:
        f.write(f"ply\nformat binary_little_endian 1.0\nelement vertex {len(s)}\n{head}end_header\n".encode())
        rows.tofile(f)


# ---- gsplat's checkpoint ----------------------------------------------------------------------------------------------------------

def _of_checkpoint(splats: Any, path: Path) -> Splats:
    names = {"means": "means", "scales": "log_scales", "quats": "quats", "opacities": "opacity_logits", "sh0": "sh0", "shN": "shN"}
    try:
        a = {ours: np.asarray(splats[theirs], np.float32) for theirs, ours in names.items()}
    except (KeyError, TypeError, ValueError) as e:
        raise BakeError(f"'{path}' has no splats as gsplat keeps them (means, scales, quats, opacities, sh0, shN): {e}") from e
    require(a["sh0"].ndim == 3 and a["sh0"].shape[1] == 1, f"sh0 of '{path}' is {list(a['sh0'].shape)}, not [n, 1, 3]")
    s = Splats(a["means"], a["log_scales"], a["quats"], a["opacity_logits"], a["sh0"][:, 0], a["shN"])
    s.check()
    return s


def checkpoint(s: Splats) -> dict[str, Array]:
    """gsplat's dictionary "splats": means, scales (logarithms), quats, opacities (logits), sh0 [n, 1, 3], shN [n, K - 1, 3]; float32."""
    def f32(a: Array) -> Array:
        return np.ascontiguousarray(a, np.float32)

    return {"means": f32(s.means), "scales": f32(s.log_scales), "quats": f32(s.quats), "opacities": f32(s.opacity_logits), "sh0": f32(s.sh0[:, None]), "shN": f32(s.shN)}


# What numpy and zipfile raise of files that are none, or say of themselves what they do not hold.
_BAD_NPZ = (TypeError, ValueError, OSError, EOFError, KeyError, AttributeError, NotImplementedError, MemoryError, zipfile.BadZipFile, zlib.error)


def _read_checkpoint(path: Path) -> Splats:
    if str(path).endswith(".npz"):
        try:
            with np.load(path, allow_pickle=False) as found:
                return _of_checkpoint({name: found[name] for name in found.files}, path)
        except _BAD_NPZ as e:
            raise BakeError(f"'{path}' cannot be read: {e}") from e
    import torch
    try:
        found = torch.load(path, map_location="cpu", weights_only=True)  # numbers alone: a pickle may run anything
    except Exception as e:  # what a pickle that is none raises is not written down
        raise BakeError(f"'{path}' cannot be read: {e}") from e
    require(isinstance(found, dict) and isinstance(found.get("splats", found), dict), f"'{path}' holds no splats")
    return _of_checkpoint({k: v.detach().numpy() for k, v in found.get("splats", found).items() if hasattr(v, "detach")}, path)


def _write_checkpoint(path: Path, s: Splats) -> None:
    if str(path).endswith(".npz"):
        with open(path, "wb") as f:
            np.savez(f, **checkpoint(s))
        return
    import torch
    torch.save({"step": 0, "splats": {k: torch.from_numpy(v) for k, v in checkpoint(s).items()}}, path)


def _is_checkpoint(path: Path) -> bool:
    return str(path).endswith((".npz", ".pt", ".ckpt"))


# ---- files ------------------------------------------------------------------------------------------------------------------------

@lru_cache(maxsize=None)
def _has_convert(_: str) -> bool:
    try:
        program.run(["convert", "--version"])
    except BakeError:
        return False
    return True


def _convert(source: Path, target: pathlib.Path, words: Sequence[str], folder: pathlib.Path) -> None:
    if _has_convert(program.path()):
        program.run(["convert", os.fspath(source), os.fspath(target), "--quiet", "--overwrite", *words])
        return
    manifest = os.fspath(folder / "manifest.db")
    program.run(["import", os.fspath(source), manifest, "--quiet"])
    program.run(["export", manifest, "--layer", "source", "-o", os.fspath(target), "--quiet", "--overwrite", *words])


def read(path: Path, options: Iterable[str] = ()) -> Union[Splats, Points]:
    """Reads a scene: any file or folder that kiln imports, or gsplat's checkpoint (.npz; .pt, .ckpt where torch is). Rows are in the
    file's order; those that kiln drops (NaN, no rotation) are not there. options: of `kiln convert`, such as "--sh-degree=1".

    BakeError: with kiln's sentence. LibraryError: there is no program kiln."""
    if _is_checkpoint(path):
        return _read_checkpoint(path)
    with tempfile.TemporaryDirectory(prefix="splatkiln-") as folder:
        target = pathlib.Path(folder) / "scene.ply"
        _convert(path, target, ["--order=source", *options], pathlib.Path(folder))
        return _of_ply(target)


def write(path: Path, splats: Splats, format: Optional[str] = None, options: Iterable[str] = ()) -> None:
    """Writes a scene: gsplat's checkpoint (.npz; .pt, .ckpt where torch is), or what `kiln export --list-formats` lists, chosen by the
    name's suffix or by `format`. A file that is there is replaced. options: of `kiln convert`, such as "--columns=inria".

    BakeError: arrays that do not fit, or kiln's sentence. LibraryError: there is no program kiln."""
    splats.check()
    if format is None and _is_checkpoint(path):
        _write_checkpoint(path, splats)
        return
    with tempfile.TemporaryDirectory(prefix="splatkiln-") as folder:
        source = pathlib.Path(folder) / "scene.ply"
        _to_ply(source, splats)
        _convert(source, pathlib.Path(path).absolute(), [*([f"--format={format}"] if format else []), *options], pathlib.Path(folder))
