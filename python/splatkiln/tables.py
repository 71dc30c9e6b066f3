"""tables -- the tile tables of a bake: which Gaussians touch which tile of a camera's picture, in depth order.

A tile has 16 x 16 pixels; tiles are counted row by row from the top left. A rank is a place among the Gaussians that the camera
sees, nearest first.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Optional, Sequence

import numpy as np

from splatkiln.arrays import Array
from splatkiln.database import Database, hash_of
from splatkiln.errors import require
from splatkiln.layers import Layer

TILE = 16  # pixels


@dataclass
class Band:
    row0: int
    row1: int
    pairs: int


class TileTable:
    """For one camera and profile: the Gaussians of each tile of 16 x 16 pixels, nearest first."""

    def __init__(self, db: Database, row: Sequence[Any]) -> None:
        (self._id, self.camera, self.profile, antialiased, self.near, self.width, self.height, self.tiles_x, self.tiles_y,
         self.digest, self.visible, self.pairs) = row
        self.antialiased, self._db = bool(antialiased), db
        self._lists: Optional[tuple[Array, Array]] = None
        self._where = f"the tile table of camera '{self.camera}'"
        self._check(1 <= self.width <= 1 << 20 and 1 <= self.height <= 1 << 20, "has an impossible size")
        self._check((self.tiles_x, self.tiles_y) == (-(-self.width // TILE), -(-self.height // TILE)), "has a wrong number of tiles")
        self._check(0 <= self.visible <= 2**32 - 2 and self.pairs >= 0, "has impossible counts")
        self._segments: dict[tuple[int, str], list[tuple[bytes, Optional[int]]]] = {}
        self.bands: list[Band] = []
        lines = [f"{self.width} {self.height} {self.visible} {self.pairs}"]
        for band, name, segment, digest, size in db.rows(
                "SELECT band, name, segment, hash, raw_bytes FROM tile_segment WHERE tile_table = ? ORDER BY band, name, segment", "itibi", self._id):
            of = self._segments.setdefault((band, name), [])
            self._check(segment == len(of), "has segments out of order")
            of.append((digest, size))
        lines += self._lines(-1)
        for i, (band, row0, row1, pairs) in enumerate(db.rows(
                "SELECT band, row0, row1, pairs FROM tile_band WHERE tile_table = ? ORDER BY band", "iiii", self._id)):
            self._check(band == i and row0 == (self.bands[-1].row1 if self.bands else 0) < row1 <= self.tiles_y and pairs >= 0, "has bands that do not fit")
            self.bands.append(Band(row0, row1, pairs))
            lines += [f"{row0} {row1} {pairs}"] + self._lines(band)
        self._check(self.bands and self.bands[-1].row1 == self.tiles_y and sum(b.pairs for b in self.bands) == self.pairs, "has bands that do not fit")
        self._check(all((b == -1) == (n in ("chunks", "visible_row", "visible_slot")) and b < len(self.bands) for b, n in self._segments),
                    "has arrays that do not belong to it")
        self._check(hash_of("".join(line + "\n" for line in lines).encode()) == self.digest, "has another digest than it says")

    def _check(self, ok: object, what: str) -> None:
        require(ok, f"{self._where} {what}")

    def _lines(self, band: int) -> list[str]:
        return [f"{name} {digest.hex().upper()}" for (b, name), of in sorted(self._segments.items()) if b == band for digest, _ in of]

    def _array(self, band: int, name: str, dtype: str, n: Optional[int] = None) -> Array:
        segments = self._segments.get((band, name), [])
        total = sum(size or 0 for _, size in segments) if n is None else n * np.dtype(dtype).itemsize
        return self._db.array(segments, total, dtype)

    @property
    def name(self) -> str:
        """As kiln-verify --digest has it."""
        camera = "".join(f"%{b:02X}" if b <= 32 or b in (37, 127) else chr(b) for b in self.camera.encode())
        return f"{camera.encode('latin-1').decode()}:{self.profile}{'_aa' if self.antialiased else ''}:near={self.near:g}"

    def chunks(self) -> list[str]:
        """Names of the chunks that have a visible Gaussian; their places are slots."""
        names = self._array(-1, "chunks", "u1").tobytes()
        self._check(names == b"" or names.endswith(b"\0"), "has a list of chunks that does not end")
        return [name.decode("ascii", "replace") for name in names.split(b"\0")[:-1]]

    def visible_rows(self, layer: Layer, levels: Optional[Layer] = None) -> Array:
        """The visible Gaussians, nearest first: for each rank its row in the layer, chunk after chunk; behind them those of its levels of
        detail, which tables of kiln-tiles --level name. int64 [visible]"""
        chunks = layer.chunks + (levels.chunks if levels else [])
        first = {c.name: (start, c.count) for c, start in zip(chunks, np.cumsum([0] + [c.count for c in chunks]))}
        names = self.chunks()
        of_levels = " (levels of detail have chunks with an @)" if not levels and any("@" in name for name in names) else ""
        self._check(all(name in first for name in names), f"is of chunks that the layer '{layer.kind}' lacks{of_levels}; run kiln-tiles again")
        start, count = (np.array([first[name][i] for name in names], np.int64) for i in (0, 1))
        slot = self._array(-1, "visible_slot", "<u4", self.visible).astype(np.int64)
        row = self._array(-1, "visible_row", "<u2", self.visible).astype(np.int64)
        self._check(self.visible == 0 or slot.max() < len(names), "has a slot that is not there")
        self._check((row < count[slot]).all(), "has a row that is not there")
        return start[slot] + row

    def band_codes(self, index: int) -> tuple[Array, Array, Array]:
        """As stored: counts and sizes uint32 [tiles of the band], code uint8 [sum of sizes]."""
        b, tiles = self.bands[index], (self.bands[index].row1 - self.bands[index].row0) * self.tiles_x
        counts, sizes = self._array(index, "tile_count", "<u4", tiles), self._array(index, "tile_bytes", "<u4", tiles)
        code = self._array(index, "rank_delta", "u1")
        self._check(counts.sum(dtype=np.uint64) == b.pairs and sizes.sum(dtype=np.uint64) == len(code), "has counts that do not fit")
        return counts, sizes, code

    def band(self, index: int) -> tuple[Array, Array]:
        """counts uint32 [tile rows of the band, tiles_x] and ranks int64 [sum of counts], tile after tile, ascending in a tile."""
        b, (counts, sizes, code) = self.bands[index], self.band_codes(index)
        # The byte of a number that has bit 7 clear is its last one; lowest seven bits first.
        last = np.flatnonzero(code < 128)
        self._check(len(last) == b.pairs and (len(code) == 0 or code[-1] < 128), "has codes that do not fit")
        behind = np.concatenate([[0], last + 1])  # byte behind so many numbers
        length = np.diff(behind)
        most = int(length.max(initial=1))
        self._check(most <= 5, "has a number of more than five bytes")
        delta = np.zeros(b.pairs, np.int64)
        for i in range(most):
            longer = length > i
            delta[longer] |= (code[behind[:-1][longer] + i].astype(np.int64) & 127) << (7 * i)
        stop = np.cumsum(counts, dtype=np.int64)  # numbers up to the end of each tile
        start = stop - counts
        self._check((behind[stop] == np.cumsum(sizes, dtype=np.int64)).all(), "has codes that cross tiles")
        total = np.concatenate([[0], np.cumsum(delta)])
        ranks = total[1:] - np.repeat(total[start], counts)
        first = np.zeros(b.pairs, bool)
        first[start[counts > 0]] = True
        self._check((first | (delta > 0)).all() and (ranks < self.visible).all(), "has ranks that do not increase or are not there")
        return counts.reshape(-1, self.tiles_x), ranks

    def lists(self) -> tuple[Array, Array]:
        """offsets int64 [tiles_y * tiles_x + 1] and ranks int64 [pairs]: tile i, row by row, has ranks[offsets[i]:offsets[i + 1]]."""
        bands = [self.band(i) for i in range(len(self.bands))]
        counts = np.concatenate([c.reshape(-1) for c, _ in bands])
        return np.concatenate([[0], np.cumsum(counts, dtype=np.int64)]), np.concatenate([r for _, r in bands])

    @property
    def isect_offsets(self) -> Array:
        """Where the list of each tile begins, as gsplat.rasterize_to_pixels takes it: int32 [1, tiles_y, tiles_x]."""
        return self._int32_lists()[0]

    @property
    def flatten_ids(self) -> Array:
        """The ranks of all lists, as gsplat.rasterize_to_pixels takes them where it gets the visible Gaussians alone, nearest first
        (visible_rows, Tensors.rows): int32 [pairs]. Tensors.isect has them as rows of all Gaussians."""
        return self._int32_lists()[1]

    def _int32_lists(self) -> tuple[Array, Array]:
        if self._lists is None:
            self._check(self.pairs < 2**31, "has more pairs than gsplat's offsets of 31 bits can name")
            offsets, ranks = self.lists()
            self._lists = offsets[:-1].astype(np.int32).reshape(1, self.tiles_y, self.tiles_x), ranks.astype(np.int32)
        return self._lists
