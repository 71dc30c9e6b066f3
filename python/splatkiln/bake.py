"""bake -- a bake: its scene, cameras, layers and tile tables, as arrays that were checked."""
from __future__ import annotations

import os
import pathlib
from types import SimpleNamespace
from typing import Any, Iterable, Iterator, Optional, Sequence, Union

import numpy as np

from splatkiln import drawing
from splatkiln.arrays import Array
from splatkiln.database import Database, hash_of
from splatkiln.errors import require
from splatkiln.layers import GAUSSIAN, PLANES, TYPES, Camera, Chunk, Layer, Plane
from splatkiln.tables import TileTable
from splatkiln.tensors import Tensors, make_tensors

Path = Union[str, os.PathLike[str]]


def manifest_in(path: Path) -> pathlib.Path:
    """The manifest that is meant: the file itself, or manifest.db in a folder or in its folder bake/."""
    given = pathlib.Path(path)
    for place in (given / "manifest.db", given / "bake" / "manifest.db"):
        if given.is_dir() and place.is_file():
            return place
    return given


def open_bake(path: Path) -> Bake:
    """Opens a bake for reading: a manifest, a folder that holds a manifest.db, or a scene's folder with bake/manifest.db.
    BakeError: it is none, is damaged, or has text that a manifest has not. Close it, or use `with`."""
    return Bake(manifest_in(path))


class Bake:
    """A manifest, read-only. scene: a namespace of the columns of the table (name, kind, rows_read, rows_dropped, sh_degree,
    antialiased, up_axis, unit, origin float64 [3], root_centre, root_half, background or None). cameras: by name. One thread at a
    time may use a Bake, and it is the one that opened it."""

    def __init__(self, path: Path) -> None:
        self._db, self._drawn = Database(path), drawing.Kept()
        self.path = self._db.path
        try:
            self.scene, self.cameras = self._read_scene(), self._read_cameras()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._db.db.close()

    def __enter__(self) -> Bake:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def _read_scene(self) -> SimpleNamespace:
        rows = self._db.rows("SELECT name, kind, rows_read, rows_dropped, sh_degree, antialiased, up_axis, unit, origin_x, origin_y, origin_z, "
                             "root_x, root_y, root_z, root_half, background_r, background_g, background_b FROM scene", "ttiiiittfffFFFFFFF")
        require(len(rows) == 1, f"'{self.path}' has no scene: run kiln-import")
        name, kind, rows_read, rows_dropped, degree, antialiased, up, unit, *numbers = rows[0]
        require(0 <= degree <= 8 and antialiased in (0, 1) and rows_read >= 0, f"'{self.path}' has a scene that cannot be")

        def vector(v: list[Any]) -> Optional[Array]:
            return None if None in v else np.array(v)

        return SimpleNamespace(name=name, kind=kind, rows_read=rows_read, rows_dropped=rows_dropped, sh_degree=degree, antialiased=bool(antialiased),
                               up_axis=up, unit=unit, origin=vector(numbers[:3]), root_centre=vector(numbers[3:6]), root_half=numbers[6],
                               background=vector(numbers[7:10]))

    def _read_cameras(self) -> dict[str, Camera]:
        cameras = {}
        for row in self._db.rows("SELECT name, r00, r01, r02, r10, r11, r12, r20, r21, r22, t0, t1, t2, width, height, fx, fy, cx, cy, model, "
                                 "params, distorted, synthetic, split FROM camera ORDER BY name", "t" + 12 * "f" + "iifffftbiit"):
            name, (r, t), (width, height, fx, fy, cx, cy, model, params, distorted, synthetic, split) = row[0], (row[1:10], row[10:13]), row[13:]
            R, params = np.array(r).reshape(3, 3), np.frombuffer(params, "<f8") if len(params) % 8 == 0 else np.array([np.nan])
            parts = name.split("/")
            require(name not in cameras and name and not name.startswith("/") and ".." not in parts and "\\" not in name
                     and not any(ord(c) < 32 or ord(c) == 127 for c in name), f"'{self.path}' has a camera name that is none")
            require(1 <= width <= 1 << 20 and 1 <= height <= 1 << 20 and fx > 0 and fy > 0 and np.isfinite(params).all()
                     and np.abs(R @ R.T - np.eye(3)).max() <= 4e-3 and np.linalg.det(R) > 0, f"camera '{name}' has impossible numbers")
            cameras[name] = Camera(name, R, np.array(t), width, height, fx, fy, cx, cy, model, params, bool(distorted), bool(synthetic), split)
        return cameras

    def layer(self, kind: str = "baked") -> Layer:
        """The current layer of a kind: source, spacing, initial, pruned, baked (the one that renderers draw), visibility, levels."""
        db = self._db
        rows = db.rows("SELECT layer.id, layer.kind, layer.digest, stage_output.digest, count, sh_degree FROM stage_output JOIN layer "
                       "ON layer.id = stage_output.layer WHERE role = ?", "itbbii", kind)
        require(len(rows) == 1, f"'{self.path}' has no layer '{kind}'")
        number, of_kind, digest, wanted, count, degree = rows[0]
        require(of_kind == kind and digest == wanted and 0 <= degree <= 8, f"the layer '{kind}' is not the one that its stage names")
        chunks: list[Chunk] = []
        ids: dict[int, Chunk] = {}
        lines: list[str] = []
        for (ident, ordinal, name, parent, rows_, level, lo, hi, *box) in db.rows(
                "SELECT id, ordinal, name, parent, count, level, hilbert_lo, hilbert_hi, box_min_x, box_min_y, box_min_z, box_max_x, box_max_y, "
                "box_max_z, reach_min_x, reach_min_y, reach_min_z, reach_max_x, reach_max_y, reach_max_z, max_log_scale, max_opacity_logit "
                "FROM chunk WHERE layer = ? ORDER BY ordinal", "iittiiii" + 14 * "f", number):
            require(ordinal == len(chunks) and 0 <= rows_ <= 65536 and all(33 <= ord(c) < 127 for c in name), f"the layer '{kind}' has chunks that cannot be")
            a, b, c, d = np.array(box[:12]).reshape(4, 3)
            require((a <= b).all() and (c <= d).all(), f"chunk '{name}' has boxes that cannot be")
            chunks.append(Chunk(name, parent, rows_, level, (lo, hi), a, b, c, d, box[12], box[13], {}))
            ids[ident] = chunks[-1]
        require(sum(c.count for c in chunks) == count <= 2**32 - 2 and len({c.name for c in chunks}) == len(chunks), f"the layer '{kind}' has chunks that cannot be")
        self._read_planes(number, ids, degree)
        origin = self._read_levels(number, ids, kind) if kind == "levels" else None
        if origin:
            lines += [f"of {origin.baked.hex().upper()} {origin.profile.encode().hex().upper()} {origin.antialiased:d} {origin.near:g}\n"]
        for c in chunks:
            if origin:
                lines += [f"{c.name.encode().hex().upper()} in {c.parent.encode().hex().upper()}"
                          + (f" {c.error_step} {c.errors.tobytes().hex().upper()}" if c.errors.size else "") + "\n"]
            head = f"{c.name.encode().hex().upper()} {c.count} "
            lines += [f"{head}{p.name.encode().hex().upper()} {p.type} {p.components} {h.hex().upper()}\n"
                      for p in c.planes.values() for h, _ in p.segments or [(b"", None)]] or [f"{head}\n"]
        require(hash_of("".join(lines).encode()) == digest, f"the layer '{kind}' has another digest than it says")
        partial = db.rows("SELECT state FROM stage WHERE name = 'import'", "t") == [("partial",)]
        return Layer(db, kind, digest, count, degree, chunks, 2**32 if partial else self.scene.rows_read, origin)

    def _read_levels(self, layer: int, ids: dict[int, Chunk], kind: str) -> SimpleNamespace:
        """What a layer of levels has beside its chunks and planes; the errors are put to the chunks."""
        rows = self._db.rows("SELECT baked, profile, antialiased, near_m FROM level_origin WHERE layer = ?", "btif", layer) if self._db.version > 1 else []
        require(len(rows) == 1 and len(rows[0][0]) == 16 and rows[0][3] > 0, f"the layer '{kind}' does not say what its levels are of")
        for chunk, step, errors in self._db.rows("SELECT chunk, step, errors FROM level_error JOIN chunk ON chunk.id = level_error.chunk "
                                                 "WHERE layer = ?", "iib", layer):
            require(chunk in ids and len(errors) in range(4, 33, 4) and ids[chunk].errors.size == 0, f"the layer '{kind}' has errors of no chunk")
            c = ids[chunk]
            c.error_step, c.errors = step, np.frombuffer(errors, "<f4")
            require(np.isfinite(c.errors).all() and (c.errors >= 0).all() and (c.errors[1:] <= 4 * c.errors[:-1]).all(), f"chunk '{c.name}' has errors that cannot be")
        for c in ids.values():
            require(1 <= c.level <= 32 and c.count > 0 and c.name.partition("@")[2] == str(c.level), f"chunk '{c.name}' has a level that cannot be")
        baked, profile, antialiased, near = rows[0]
        return SimpleNamespace(baked=baked, profile=profile, antialiased=bool(antialiased), near=near)

    def _read_planes(self, layer: int, ids: dict[int, Chunk], degree: int) -> None:
        rows = self._db.rows("SELECT chunk.id, plane.id, plane.name, type, components, raw_bytes FROM chunk JOIN plane ON plane.chunk = chunk.id "
                             "WHERE layer = ? ORDER BY plane.id", "iittii", layer)
        planes = {}
        for chunk, ident, name, kind, components, raw_bytes in rows:
            require(chunk in ids and kind in TYPES and (name in PLANES or name.startswith("extra/")), "a plane is none that this file knows")
            want = PLANES.get(name, (kind, min(max(components, 1), 16)))
            want = (want[0], 3 * ((degree + 1) ** 2 - 1)) if want[1] is None else want
            c = ids[chunk]
            require((kind, components) == want and raw_bytes == c.count * components * np.dtype(TYPES[kind]).itemsize and name not in c.planes,
                     f"plane '{name}' of chunk '{c.name}' has another type or size than it must")
            planes[ident] = c.planes[name] = Plane(name, kind, components, raw_bytes, [])
        for c in ids.values():
            c.planes = {name: c.planes[name] for name in sorted(c.planes, key=lambda name: name.encode())}
            gaussian = [name in c.planes for name in GAUSSIAN if name != "means"]
            require(any(gaussian) == all(gaussian) and ("shN" in c.planes) == (all(gaussian) and degree > 0), f"chunk '{c.name}' lacks planes")
        for ident, segment, digest in self._db.rows(
                "SELECT plane, segment, hash FROM chunk JOIN plane ON plane.chunk = chunk.id JOIN plane_segment ON plane_segment.plane = plane.id "
                "WHERE layer = ? ORDER BY plane, segment", "iib", layer):
            require(ident in planes and segment == len(planes[ident].segments) and len(digest) == 16, "a plane has segments out of order")
            planes[ident].segments.append((digest, None))

    def tile_tables(self) -> list[TileTable]:
        """All tile tables, by camera. A table may be of an older layer when stage `tiles` is stale (stage_state)."""
        tables = [TileTable(self._db, row) for row in self._db.rows(
            "SELECT id, camera, profile, antialiased, near_m, width, height, tiles_x, tiles_y, digest, visible, pairs FROM tile_table "
            "ORDER BY camera, profile, antialiased, near_m", "ittifiiiibii")]
        return tables

    def tile_table(self, camera: str) -> TileTable:
        """The tile table of a camera."""
        found = [t for t in self.tile_tables() if t.camera == camera]
        require(found, f"'{self.path}' has no tile table of camera '{camera}': run kiln-tiles")
        return found[0]

    def stage_state(self, stage: str) -> str:
        """'fresh', 'stale', 'partial' or 'missing'."""
        rows = self._db.rows("SELECT state FROM stage WHERE name = ?", "t", stage)
        return str(rows[0][0]) if rows else "missing"

    def tensors(self, device: Any = None, layer: Optional[Layer] = None, cameras: Optional[Iterable[str]] = None) -> Tensors:
        """All Gaussians of a layer (default: the one that renderers draw), activated, and cameras (default: all), as
        gsplat.rasterization takes them. device: None for numpy arrays, else what torch takes, such as "cpu" or "cuda:1"."""
        return make_tensors(self, layer or self.layer(), device, cameras)

    def draw(self, camera: Union[str, Camera], profile: str = "inria", antialiased: Optional[bool] = None, near: float = 0.0,
             background: Optional[Sequence[float]] = None, device: int = -1, threads: int = 0, layer: Optional[Layer] = None) -> Array:
        """A picture: float32 [height, width, 4], colours over the background and alpha, with the bits of kiln-render --format npy on
        the same kind of device. All planes of the layer stay in memory for the next picture.

        camera       a name, or a Camera of your own
        profile      whose arithmetic: one of PROFILES
        antialiased  None: what the scene says
        near         near plane in scene units; 0: the profile's
        background   r g b; None: the scene's, or black
        device       -1 the CPU, else the number of a GPU of this process
        threads      of the CPU; 0: all

        BakeError: no such camera or profile, or planes that cannot be drawn. LibraryError: there is no libsplatkiln, or a GPU failed.
        MemoryError: out of memory."""
        if not isinstance(camera, Camera):
            require(camera in self.cameras, f"'{self.path}' has no camera '{camera}'; its first are {', '.join(list(self.cameras)[:5])}")
            camera = self.cameras[camera]
        look = drawing.Look(profile, self.scene.antialiased if antialiased is None else bool(antialiased), near, background, device, threads)
        return drawing.draw(self.scene, layer or self.layer(), camera, look, self._drawn)

    def draw_many(self, cameras: Optional[Iterable[Union[str, Camera]]] = None, **look: Any) -> Iterator[Array]:
        """The pictures of cameras (default: all, by name), one after another, each as draw() gives it with the same arguments."""
        layer = look.pop("layer", None) or self.layer()
        for camera in self.cameras if cameras is None else cameras:
            yield self.draw(camera, layer=layer, **look)
