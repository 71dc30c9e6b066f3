"""splatkiln -- reads a bake into numpy arrays, and draws it through libsplatkiln.

    import splatkiln
    with splatkiln.Bake("bake/manifest.db") as bake:
        layer = bake.layer()                           # the chunks that renderers draw
        for chunk in layer.chunks:
            g = layer.gaussians(chunk)                 # activated: g.means [n, 3], g.scales, g.quats, g.opacities, g.sh
        table = bake.tile_table("test/r_0")            # which Gaussians touch which tile, if kiln-tiles made it
        offsets, ranks = table.lists()
        picture = bake.draw("test/r_0")                # float32 [height, width, 4], the bits of kiln-render

One file; copy it. It needs numpy, and to unpack blobs either the modules zstandard and xxhash, or libsplatkiln.so (`make lib`),
which it finds in $SPLATKILN_LIBRARY, in build/ of this repository, or where the system has libraries. `draw` needs libsplatkiln.
Run as a program it prints the digests of layers and tile tables: python3 splatkiln.py bake/manifest.db

What it reads is checked, because a manifest may be a stranger's (schema/SCHEMA.md): the text of the tables, the types of columns,
sizes, counts, the hash of every blob, the digest of every layer and table, finite values. What is wrong raises BakeError. The
manifest is opened read-only. One thread at a time may use a Bake.
"""
import ctypes
import ctypes.util
import hashlib
import os
import pathlib
import sqlite3
import stat
import sys
from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np

try:
    import zstandard
except ImportError:
    zstandard = None
try:
    import xxhash
except ImportError:
    xxhash = None

APPLICATION_ID, SCHEMA_VERSIONS = 0x4B494C4E, (1, 2)
BLOB_MAX = 64 << 20  # bytes of one blob, and of every segment of an array but the last
TILE = 16
PROFILES = ("inria", "gsplat-1.5", "gsplat-1.6")
TYPES = {"u8": "u1", "i8": "i1", "u16": "<u2", "i16": "<i2", "u32": "<u4", "i32": "<i4", "f32": "<f4", "f64": "<f8"}
# Type and components of the planes that this file knows; those of shN follow from the degree.
PLANES = {"means": ("f32", 3), "log_scales": ("f32", 3), "quats": ("f32", 4), "opacity_logits": ("f32", 1), "sh0": ("f32", 3),
          "shN": ("f32", None), "source_row": ("u32", 1), "spacing2": ("f32", 1), "rgb": ("f32", 3),
          "visibility": ("f32", 1), "weights": ("f32", 1), "source_last": ("u32", 1), "source_count": ("u32", 1)}
GAUSSIAN = ("means", "log_scales", "quats", "opacity_logits", "sh0")
# The tables that are read, and the first 16 digits of the SHA-256 of the text that manifest.sql makes them with.
TABLES = {"blob": "def9824b967e99ab", "scene": "2bcfca7141cf5746", "camera": "a22a8650b667a647", "layer": "7811c733ca34fb70",
          "chunk": "6dc453a4c9aa868f", "plane": "698c1b4c44b715dc", "plane_segment": "96fa9adbe181fc20", "stage": "e2a5a2fc29fd5288",
          "stage_output": "4ae45ee2ec3457b4", "tile_table": "1e4fd9ce841e3879", "tile_band": "12e1bb2439d5b772", "tile_segment": "f99989cc5810183f"}
TABLES_OF_2 = {"level_origin": "d7be2972d4a04604", "level_error": "a127f098340a3db7"}  # what version 2 has beside them


class BakeError(Exception):
    """The bake is damaged, is not one, or lacks what was asked for."""


def _require(ok, sentence):
    if not ok:
        raise BakeError(sentence)


# ---- libsplatkiln -----------------------------------------------------------------------------------------------------------------

class _Error(ctypes.Structure):  # kiln_error
    _fields_ = [("status", ctypes.c_int), ("msg", ctypes.c_char * 1024)]


class _Blob(ctypes.Structure):  # kiln_blob
    _fields_ = [("hash", ctypes.c_ubyte * 16), ("raw_bytes", ctypes.c_uint64), ("elem", ctypes.c_uint32),
                ("packed_bytes", ctypes.c_size_t), ("packed", ctypes.c_char_p)]


class _Hash(ctypes.Structure):  # kiln_hash
    _fields_ = [("bytes", ctypes.c_ubyte * 16)]


_library = None


def library():
    """libsplatkiln, loaded once; None where there is none."""
    global _library
    if _library is None:
        here = pathlib.Path(__file__).resolve().parent.parent.parent / "build" / "libsplatkiln.so.1"
        wanted = os.environ.get("SPLATKILN_LIBRARY")
        name = wanted or (str(here) if here.exists() else ctypes.util.find_library("splatkiln"))
        try:
            _library = ctypes.CDLL(name) if name else False
        except OSError as e:
            _require(not wanted, f"cannot load SPLATKILN_LIBRARY: {e}")
            _library = False
        if _library:
            _library.kiln_blob_unpack.argtypes = [ctypes.POINTER(_Blob), ctypes.c_void_p, ctypes.POINTER(_Error)]
            _library.kiln_hash_of.argtypes, _library.kiln_hash_of.restype = [ctypes.c_char_p, ctypes.c_size_t], _Hash
    return _library or None


def hash_of(data):
    """XXH3-128 of bytes: 16 bytes, most significant first."""
    if xxhash:
        return xxhash.xxh3_128_digest(data)
    _require(library(), "hashes need the Python module xxhash or libsplatkiln.so (set SPLATKILN_LIBRARY)")
    return bytes(library().kiln_hash_of(bytes(data), len(data)).bytes)


def unpack(packed, raw_bytes, elem, digest):
    """The bytes of a blob, unpacked, unshuffled and compared with their hash. uint8 [raw_bytes]"""
    _require(elem in (1, 2, 4, 8) and 0 <= raw_bytes <= BLOB_MAX and raw_bytes % elem == 0, f"blob {digest.hex()} has an impossible size")
    if not (zstandard and xxhash):
        _require(library(), "blobs need the Python modules zstandard and xxhash, or libsplatkiln.so (set SPLATKILN_LIBRARY)")
        raw, err = np.empty(raw_bytes, np.uint8), _Error()
        blob = _Blob((ctypes.c_ubyte * 16).from_buffer_copy(digest), raw_bytes, elem, len(packed), packed)
        _require(library().kiln_blob_unpack(blob, raw.ctypes.data, err) == 0, err.msg.decode(errors="replace"))
        return raw
    try:
        _require(zstandard.frame_content_size(packed) == raw_bytes, f"blob {digest.hex()} has a frame of another size")
        shuffled = zstandard.ZstdDecompressor().decompress(packed, max_output_size=max(raw_bytes, 1))
    except zstandard.ZstdError as e:
        raise BakeError(f"blob {digest.hex()} is damaged: {e}") from e
    raw = np.ascontiguousarray(np.frombuffer(shuffled, np.uint8).reshape(elem, -1).T).reshape(-1)
    _require(len(raw) == raw_bytes and hash_of(raw.tobytes()) == digest, f"blob {digest.hex()} is damaged: its hash is another one")
    return raw


# ---- the database -----------------------------------------------------------------------------------------------------------------

def _open(path):
    """A read-only connection with the settings that SCHEMA.md asks for ("A stranger's manifest")."""
    path = pathlib.Path(path).resolve()
    _require(path.is_file(), f"there is no manifest '{path}'")
    for suffix in ("-wal", "-shm", "-journal"):
        try:
            mode = os.lstat(f"{path}{suffix}").st_mode
        except FileNotFoundError:
            continue
        _require(stat.S_ISREG(mode), f"'{path}{suffix}' is no regular file")
    journal = pathlib.Path(f"{path}-journal")
    if journal.exists():
        _require(journal.read_bytes()[-8:] != bytes.fromhex("d9d505f920a163d7"), f"'{journal}' names another file")
    wal = pathlib.Path(f"{path}-wal")
    sealed = not os.access(path.parent, os.W_OK) and not (wal.exists() and wal.stat().st_size)
    db = sqlite3.connect(f"{path.as_uri()}?mode=ro{'&immutable=1' if sealed else ''}", uri=True, isolation_level=None)
    for name, on in (("DEFENSIVE", 1), ("TRUSTED_SCHEMA", 0), ("ENABLE_TRIGGER", 0), ("ENABLE_VIEW", 0), ("ENABLE_LOAD_EXTENSION", 0)):
        if hasattr(db, "setconfig"):  # Python 3.12; no query below reads a view
            db.setconfig(getattr(sqlite3, f"SQLITE_DBCONFIG_{name}"), bool(on))
    if hasattr(db, "setlimit"):
        db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, BLOB_MAX + BLOB_MAX // 256 + (1 << 20))
    for pragma in ("trusted_schema = OFF", "cell_size_check = ON", "mmap_size = 0", "query_only = ON"):
        db.execute(f"PRAGMA {pragma}")
    return db, str(path), 50_000_000 + 16 * path.stat().st_size


class _Database:
    """Queries whose rows have the types that were asked for, and that end."""

    KINDS = {"i": int, "f": float, "t": str, "b": bytes}

    def __init__(self, path):
        self.db, self.path, self.most_steps = _open(path)
        self.steps = 0
        self.db.set_progress_handler(self._step, 1_000_000)
        try:
            self._check_tables()
        except BaseException:
            self.db.close()
            raise

    def _step(self):
        self.steps += 1_000_000
        return self.steps > self.most_steps

    def _check_tables(self):
        (application,), = self.rows("PRAGMA application_id", "i")
        (version,), = self.rows("PRAGMA user_version", "i")
        _require(application == APPLICATION_ID, f"'{self.path}' is not a manifest")
        _require(version in SCHEMA_VERSIONS, f"'{self.path}' has schema version {version}; this file reads {SCHEMA_VERSIONS}")
        self.version = version
        there = {name: (kind, of, sql) for kind, name, of, sql in self.rows("SELECT type, name, tbl_name, sql FROM sqlite_schema", "tttT")}
        for name, digest in (TABLES | TABLES_OF_2 if version > 1 else TABLES).items():
            kind, of, sql = there.get(name, ("", "", ""))
            _require((kind, of) == ("table", name) and hashlib.sha256((sql or "").encode()).hexdigest()[:16] == digest,
                     f"the table '{name}' of '{self.path}' is not that of a manifest")

    def rows(self, sql, kinds, *key):
        """kinds: a letter a column: i integer, f float, t text, b bytes; in upper case NULL is allowed."""
        self.steps = 0
        try:
            rows = self.db.execute(sql, key).fetchall()
        except (sqlite3.Error, UnicodeDecodeError) as e:
            raise BakeError(f"'{self.path}' cannot be read: {e}") from e
        for row in rows:
            for value, kind in zip(row, kinds, strict=True):
                _require((value is None and kind.isupper()) or type(value) is self.KINDS[kind.lower()], f"'{self.path}' has a value of another type")
                _require(not isinstance(value, str) or "\0" not in value, f"'{self.path}' has a text with a NUL")
                _require(not isinstance(value, float) or np.isfinite(value), f"'{self.path}' has a number that is not finite")
        return rows

    def array(self, segments, total, dtype):
        """Segments (hash, bytes or None), in order, joined: [total / size of dtype]."""
        want = [min(BLOB_MAX, total - at) for at in range(0, total, BLOB_MAX)]
        _require(len(segments) == len(want), "an array lacks segments, or has too many")
        parts = []
        for (digest, listed), size in zip(segments, want):
            found = self.rows("SELECT raw_bytes, elem, packed FROM blob WHERE hash = ?", "iib", digest)
            _require(len(found) == 1, f"blob {digest.hex()} is missing")
            raw_bytes, elem, packed = found[0]
            _require(raw_bytes == size and listed in (None, size), f"blob {digest.hex()} has {raw_bytes} bytes, not {size}")
            parts.append(unpack(packed, raw_bytes, elem, digest))
        raw = parts[0] if len(parts) == 1 else np.concatenate(parts) if parts else np.empty(0, np.uint8)
        return raw.view(dtype)


# ---- what a bake holds ------------------------------------------------------------------------------------------------------------

@dataclass
class Camera:
    """x_camera = R x_world + t; x right, y down, z forward; the centre of the first pixel is (0.5, 0.5)."""
    name: str
    R: np.ndarray  # float64 [3, 3]
    t: np.ndarray  # float64 [3]
    width: int
    height: int
    fx: float
    fy: float
    cx: float
    cy: float
    model: str
    params: np.ndarray  # float64: COLMAP's, of the photo's lens where `distorted`
    distorted: bool
    synthetic: bool
    split: str

    @property
    def K(self):
        """float64 [3, 3]"""
        return np.array([[self.fx, 0, self.cx], [0, self.fy, self.cy], [0, 0, 1.0]])

    def viewmat(self, origin):
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
    segments: list = field(repr=False)  # (hash, None)


@dataclass
class Chunk:
    name: str
    parent: str
    count: int
    level: int
    hilbert: tuple
    box_min: np.ndarray
    box_max: np.ndarray
    reach_min: np.ndarray  # outside of it no Gaussian of the chunk reaches alpha 1/255
    reach_max: np.ndarray
    max_log_scale: float
    max_opacity_logit: float
    planes: dict = field(repr=False)
    error_step: int = 0  # of the layer "levels": errors[i] is that of a footprint of 2^(error_step + i) scene units
    errors: np.ndarray = field(default_factory=lambda: np.empty(0, np.float32))


def sigmoid(x):
    """1 / (1 + exp(-x)) without overflow."""
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1 / (1 + e), e / (1 + e)).astype(x.dtype)


class Layer:
    """Chunks (or blocks) in order, with their planes. kind, digest (16 bytes), count, sh_degree, chunks. Of levels also origin: baked (the
    digest of the layer whose chunks they stand for), and profile, antialiased, near, with which their errors were measured."""

    def __init__(self, db, kind, digest, count, sh_degree, chunks, most_source_rows, origin=None):
        self.kind, self.digest, self.count, self.sh_degree, self.chunks, self.origin = kind, digest, count, sh_degree, chunks, origin
        self._db, self._most_source_rows = db, most_source_rows

    def plane(self, chunk, name):
        """A plane as it is stored, [components, rows], or [rows] of one component."""
        p = chunk.planes.get(name)
        _require(p, f"chunk '{chunk.name}' has no plane '{name}'")
        a = self._db.array(p.segments, p.raw_bytes, TYPES[p.type]).reshape(p.components, chunk.count)
        self._check_values(chunk, name, a)
        return a if p.components > 1 else a[0]

    def _check_values(self, chunk, name, a):
        if name not in PLANES:
            return
        where = f"plane '{name}' of chunk '{chunk.name}'"
        _require(a.dtype.kind != "f" or np.isfinite(a).all(), f"{where} has a number that is not finite")
        _require(name != "log_scales" or (a <= 88).all(), f"{where} has a scale above e^88")
        _require(name != "quats" or a.any(axis=0).all(), f"{where} has a quaternion of zeros")
        _require(name not in ("source_row", "source_last") or a.size == 0 or a.max() < self._most_source_rows, f"{where} names rows that the source lacks")

    def gaussians(self, chunk):
        """Activated: means [n, 3] (relative to the scene's origin), scales [n, 3], quats [n, 4] (w x y z, of length 1),
        opacities [n], sh [n, (degree + 1)^2, 3]; colour towards v = max(0, 0.5 + sum of Y(v) sh)."""
        raw = {name: self.plane(chunk, name) for name in GAUSSIAN}
        sh = raw["sh0"].reshape(1, 3, chunk.count)
        if self.sh_degree > 0:
            sh = np.concatenate([sh, self.plane(chunk, "shN").reshape(-1, 3, chunk.count)])
        # The largest component first: tiny and huge quaternions have a length, too.
        quats = raw["quats"] / np.abs(raw["quats"]).max(axis=0)
        return SimpleNamespace(means=np.ascontiguousarray(raw["means"].T), scales=np.exp(raw["log_scales"].T),
                               quats=np.ascontiguousarray((quats / np.linalg.norm(quats, axis=0)).T),
                               opacities=sigmoid(raw["opacity_logits"]), sh=np.ascontiguousarray(sh.transpose(2, 0, 1)))


@dataclass
class Band:
    row0: int
    row1: int
    pairs: int


class TileTable:
    """For one camera and profile: the Gaussians of each tile of 16 x 16 pixels, nearest first."""

    def __init__(self, db, row):
        (self._id, self.camera, self.profile, antialiased, self.near, self.width, self.height, self.tiles_x, self.tiles_y,
         self.digest, self.visible, self.pairs) = row
        self.antialiased, self._db = bool(antialiased), db
        self._where = f"the tile table of camera '{self.camera}'"
        self._check(1 <= self.width <= 1 << 20 and 1 <= self.height <= 1 << 20, "has an impossible size")
        self._check((self.tiles_x, self.tiles_y) == (-(-self.width // TILE), -(-self.height // TILE)), "has a wrong number of tiles")
        self._check(0 <= self.visible <= 2**32 - 2 and self.pairs >= 0, "has impossible counts")
        self._segments, self.bands, lines = {}, [], [f"{self.width} {self.height} {self.visible} {self.pairs}"]
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
        self._check(len(self._segments) == sum(1 for b, n in self._segments if (b == -1) == (n in ("chunks", "visible_row", "visible_slot"))
                                               and b < len(self.bands)), "has arrays that do not belong to it")
        self._check(hash_of("".join(line + "\n" for line in lines).encode()) == self.digest, "has another digest than it says")

    def _check(self, ok, what):
        _require(ok, f"{self._where} {what}")

    def _lines(self, band):
        return [f"{name} {digest.hex().upper()}" for (b, name), of in sorted(self._segments.items()) if b == band for digest, _ in of]

    def _array(self, band, name, dtype, n=None):
        segments = self._segments.get((band, name), [])
        total = sum(size for _, size in segments) if n is None else n * np.dtype(dtype).itemsize
        return self._db.array(segments, total, dtype)

    @property
    def name(self):
        """As kiln-verify --digest has it."""
        camera = "".join(f"%{b:02X}" if b <= 32 or b in (37, 127) else chr(b) for b in self.camera.encode())
        return f"{camera.encode('latin-1').decode()}:{self.profile}{'_aa' if self.antialiased else ''}:near={self.near:g}"

    def chunks(self):
        """Names of the chunks that have a visible Gaussian; their places are slots."""
        names = self._array(-1, "chunks", "u1").tobytes()
        self._check(names == b"" or names.endswith(b"\0"), "has a list of chunks that does not end")
        return [name.decode("ascii", "replace") for name in names.split(b"\0")[:-1]]

    def visible_rows(self, layer, levels=None):
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

    def band_codes(self, index):
        """As stored: counts and sizes uint32 [tiles of the band], code uint8 [sum of sizes]."""
        b, tiles = self.bands[index], (self.bands[index].row1 - self.bands[index].row0) * self.tiles_x
        counts, sizes = self._array(index, "tile_count", "<u4", tiles), self._array(index, "tile_bytes", "<u4", tiles)
        code = self._array(index, "rank_delta", "u1")
        self._check(counts.sum(dtype=np.uint64) == b.pairs and sizes.sum(dtype=np.uint64) == len(code), "has counts that do not fit")
        return counts, sizes, code

    def band(self, index):
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

    def lists(self):
        """offsets int64 [tiles_y * tiles_x + 1] and ranks int64 [pairs]: tile i, row by row, has ranks[offsets[i]:offsets[i + 1]]."""
        bands = [self.band(i) for i in range(len(self.bands))]
        counts = np.concatenate([c.reshape(-1) for c, _ in bands])
        return np.concatenate([[0], np.cumsum(counts, dtype=np.int64)]), np.concatenate([r for _, r in bands])


class Bake:
    """A manifest. scene (a namespace of the columns of the table), cameras (by name), layer(), tile_tables(), draw()."""

    def __init__(self, path):
        self._db, self._arrays = _Database(path), None
        self.path = self._db.path
        try:
            self.scene, self.cameras = self._read_scene(), self._read_cameras()
        except BaseException:
            self.close()
            raise

    def close(self):
        self._db.db.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _read_scene(self):
        rows = self._db.rows("SELECT name, kind, rows_read, rows_dropped, sh_degree, antialiased, up_axis, unit, origin_x, origin_y, origin_z, "
                             "root_x, root_y, root_z, root_half, background_r, background_g, background_b FROM scene", "ttiiiittfffFFFFFFF")
        _require(len(rows) == 1, f"'{self.path}' has no scene: run kiln-import")
        name, kind, rows_read, rows_dropped, degree, antialiased, up, unit, *numbers = rows[0]
        _require(0 <= degree <= 8 and antialiased in (0, 1) and rows_read >= 0, f"'{self.path}' has a scene that cannot be")
        vector = lambda v: None if None in v else np.array(v)
        return SimpleNamespace(name=name, kind=kind, rows_read=rows_read, rows_dropped=rows_dropped, sh_degree=degree, antialiased=bool(antialiased),
                               up_axis=up, unit=unit, origin=vector(numbers[:3]), root_centre=vector(numbers[3:6]), root_half=numbers[6],
                               background=vector(numbers[7:10]))

    def _read_cameras(self):
        cameras = {}
        for row in self._db.rows("SELECT name, r00, r01, r02, r10, r11, r12, r20, r21, r22, t0, t1, t2, width, height, fx, fy, cx, cy, model, "
                                 "params, distorted, synthetic, split FROM camera ORDER BY name", "t" + 12 * "f" + "iifffftbiit"):
            name, (r, t), (width, height, fx, fy, cx, cy, model, params, distorted, synthetic, split) = row[0], (row[1:10], row[10:13]), row[13:]
            R, params = np.array(r).reshape(3, 3), np.frombuffer(params, "<f8") if len(params) % 8 == 0 else np.array([np.nan])
            parts = name.split("/")
            _require(name not in cameras and name and not name.startswith("/") and ".." not in parts and "\\" not in name
                     and not any(ord(c) < 32 or ord(c) == 127 for c in name), f"'{self.path}' has a camera name that is none")
            _require(1 <= width <= 1 << 20 and 1 <= height <= 1 << 20 and fx > 0 and fy > 0 and np.isfinite(params).all()
                     and np.abs(R @ R.T - np.eye(3)).max() <= 4e-3 and np.linalg.det(R) > 0, f"camera '{name}' has impossible numbers")
            cameras[name] = Camera(name, R, np.array(t), width, height, fx, fy, cx, cy, model, params, bool(distorted), bool(synthetic), split)
        return cameras

    def layer(self, kind="baked"):
        """The current layer of a kind: source, spacing, initial, pruned, baked (the one that renderers draw), visibility, levels."""
        db = self._db
        rows = db.rows("SELECT layer.id, layer.kind, layer.digest, stage_output.digest, count, sh_degree FROM stage_output JOIN layer "
                       "ON layer.id = stage_output.layer WHERE role = ?", "itbbii", kind)
        _require(len(rows) == 1, f"'{self.path}' has no layer '{kind}'")
        number, of_kind, digest, wanted, count, degree = rows[0]
        _require(of_kind == kind and digest == wanted and 0 <= degree <= 8, f"the layer '{kind}' is not the one that its stage names")
        chunks, ids, lines = [], {}, []
        for (ident, ordinal, name, parent, rows_, level, lo, hi, *box) in db.rows(
                "SELECT id, ordinal, name, parent, count, level, hilbert_lo, hilbert_hi, box_min_x, box_min_y, box_min_z, box_max_x, box_max_y, "
                "box_max_z, reach_min_x, reach_min_y, reach_min_z, reach_max_x, reach_max_y, reach_max_z, max_log_scale, max_opacity_logit "
                "FROM chunk WHERE layer = ? ORDER BY ordinal", "iittiiii" + 14 * "f", number):
            _require(ordinal == len(chunks) and 0 <= rows_ <= 65536 and all(33 <= ord(c) < 127 for c in name), f"the layer '{kind}' has chunks that cannot be")
            a, b, c, d = np.array(box[:12]).reshape(4, 3)
            _require((a <= b).all() and (c <= d).all(), f"chunk '{name}' has boxes that cannot be")
            chunks.append(Chunk(name, parent, rows_, level, (lo, hi), a, b, c, d, box[12], box[13], {}))
            ids[ident] = chunks[-1]
        _require(sum(c.count for c in chunks) == count <= 2**32 - 2 and len({c.name for c in chunks}) == len(chunks), f"the layer '{kind}' has chunks that cannot be")
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
        _require(hash_of("".join(lines).encode()) == digest, f"the layer '{kind}' has another digest than it says")
        partial = db.rows("SELECT state FROM stage WHERE name = 'import'", "t") == [("partial",)]
        return Layer(db, kind, digest, count, degree, chunks, 2**32 if partial else self.scene.rows_read, origin)

    def _read_levels(self, layer, ids, kind):
        """What a layer of levels has beside its chunks and planes; the errors are put to the chunks."""
        rows = self._db.rows("SELECT baked, profile, antialiased, near_m FROM level_origin WHERE layer = ?", "btif", layer) if self._db.version > 1 else []
        _require(len(rows) == 1 and len(rows[0][0]) == 16 and rows[0][3] > 0, f"the layer '{kind}' does not say what its levels are of")
        for chunk, step, errors in self._db.rows("SELECT chunk, step, errors FROM level_error JOIN chunk ON chunk.id = level_error.chunk "
                                                 "WHERE layer = ?", "iib", layer):
            _require(chunk in ids and len(errors) in range(4, 33, 4) and ids[chunk].errors.size == 0, f"the layer '{kind}' has errors of no chunk")
            c = ids[chunk]
            c.error_step, c.errors = step, np.frombuffer(errors, "<f4")
            _require(np.isfinite(c.errors).all() and (c.errors >= 0).all() and (c.errors[1:] <= 4 * c.errors[:-1]).all(), f"chunk '{c.name}' has errors that cannot be")
        for c in ids.values():
            _require(1 <= c.level <= 32 and c.count > 0 and c.name.partition("@")[2] == str(c.level), f"chunk '{c.name}' has a level that cannot be")
        baked, profile, antialiased, near = rows[0]
        return SimpleNamespace(baked=baked, profile=profile, antialiased=bool(antialiased), near=near)

    def _read_planes(self, layer, ids, degree):
        rows = self._db.rows("SELECT chunk.id, plane.id, plane.name, type, components, raw_bytes FROM chunk JOIN plane ON plane.chunk = chunk.id "
                             "WHERE layer = ? ORDER BY plane.id", "iittii", layer)
        planes = {}
        for chunk, ident, name, kind, components, raw_bytes in rows:
            _require(chunk in ids and kind in TYPES and (name in PLANES or name.startswith("extra/")), "a plane is none that this file knows")
            want = PLANES.get(name, (kind, min(max(components, 1), 16)))
            want = (want[0], 3 * ((degree + 1) ** 2 - 1)) if want[1] is None else want
            c = ids[chunk]
            _require((kind, components) == want and raw_bytes == c.count * components * np.dtype(TYPES[kind]).itemsize and name not in c.planes,
                     f"plane '{name}' of chunk '{c.name}' has another type or size than it must")
            planes[ident] = c.planes[name] = Plane(name, kind, components, raw_bytes, [])
        for c in ids.values():
            c.planes = dict(sorted(c.planes.items(), key=lambda item: item[0].encode()))
            gaussian = [name in c.planes for name in GAUSSIAN if name != "means"]
            _require(any(gaussian) == all(gaussian) and ("shN" in c.planes) == (all(gaussian) and degree > 0), f"chunk '{c.name}' lacks planes")
        for ident, segment, digest in self._db.rows(
                "SELECT plane, segment, hash FROM chunk JOIN plane ON plane.chunk = chunk.id JOIN plane_segment ON plane_segment.plane = plane.id "
                "WHERE layer = ? ORDER BY plane, segment", "iib", layer):
            _require(ident in planes and segment == len(planes[ident].segments) and len(digest) == 16, "a plane has segments out of order")
            planes[ident].segments.append((digest, None))

    def tile_tables(self):
        """All tile tables, by camera. A table may be of an older layer when stage `tiles` is stale (stage_state)."""
        tables = [TileTable(self._db, row) for row in self._db.rows(
            "SELECT id, camera, profile, antialiased, near_m, width, height, tiles_x, tiles_y, digest, visible, pairs FROM tile_table "
            "ORDER BY camera, profile, antialiased, near_m", "ittifiiiibii")]
        return tables

    def tile_table(self, camera):
        """The tile table of a camera."""
        found = [t for t in self.tile_tables() if t.camera == camera]
        _require(found, f"'{self.path}' has no tile table of camera '{camera}': run kiln-tiles")
        return found[0]

    def stage_state(self, stage):
        """'fresh', 'stale', 'partial' or 'missing'."""
        rows = self._db.rows("SELECT state FROM stage WHERE name = ?", "t", stage)
        return rows[0][0] if rows else "missing"

    # ---- pictures -------------------------------------------------------------------------------------------------------------------

    PLAIN = GAUSSIAN + ("shN", "source_row")  # the order of kernels/draw/plain.h

    def _drawn(self, layer):
        """The planes of a layer that drawing reads, kept for the next picture."""
        if self._arrays is None or self._arrays[0] != layer.digest:
            chunks = [[layer.plane(c, name) if name != "shN" or layer.sh_degree > 0 else None for name in self.PLAIN] for c in layer.chunks if c.count]
            self._arrays = (layer.digest, chunks)
        return self._arrays[1]

    def draw(self, camera, profile="inria", antialiased=None, near=0.0, background=None, device=-1, threads=0, layer=None):
        """A picture by libsplatkiln: float32 [height, width, 4], colours over the background and alpha, with the bits of
        kiln-render --format npy on the same kind of device. camera: a name or a Camera of your own. antialiased, background: None is
        what the scene says. near: 0 is the profile's. device: -1 the CPU, else the number of a GPU. All planes of the layer are
        kept in memory for the next picture."""
        lib = library()
        _require(lib, "drawing needs libsplatkiln.so: run `make lib`, or set SPLATKILN_LIBRARY")
        if not isinstance(camera, Camera):
            _require(camera in self.cameras, f"'{self.path}' has no camera '{camera}'; its first are {', '.join(list(self.cameras)[:5])}")
            camera = self.cameras[camera]
        layer = layer or self.layer()
        chunks = self._drawn(layer)
        if background is None:
            background = np.zeros(3) if self.scene.background is None else self.scene.background
        f64 = lambda *a: np.ascontiguousarray(np.concatenate([np.ravel(x) for x in a]), np.float64)
        pose, origin, lens = f64(camera.R, camera.t), f64(self.scene.origin), f64([camera.fx, camera.fy, camera.cx, camera.cy])
        background, rgba = np.ascontiguousarray(background, np.float32), np.empty((camera.height, camera.width, 4), np.float32)
        _require((pose.size, background.size) == (12, 3), "a pose has 12 numbers and a background 3")
        rows = (ctypes.c_uint64 * len(chunks))(*[len(c[-1]) for c in chunks])
        planes = (ctypes.c_void_p * (len(self.PLAIN) * len(chunks)))(*[a.ctypes.data if a is not None else None for c in chunks for a in c])
        p, number = (lambda a: ctypes.c_void_p(a.ctypes.data)), ctypes.c_uint32
        lib.kiln_plain_new.restype, lib.kiln_plain_message.restype = ctypes.c_void_p, ctypes.c_char_p
        painter = ctypes.c_void_p(lib.kiln_plain_new(ctypes.c_int(device), ctypes.c_uint(threads or os.cpu_count())))
        _require(painter, "out of memory")
        try:
            antialiased = self.scene.antialiased if antialiased is None else antialiased
            bad = lib.kiln_plain_scene(painter, p(origin), number(layer.sh_degree), number(len(chunks)), rows, planes) or \
                lib.kiln_plain_renderer(painter, profile.encode(), ctypes.c_int(antialiased), ctypes.c_float(near)) or \
                lib.kiln_plain_camera(painter, p(pose), p(lens), number(camera.width), number(camera.height)) or \
                lib.kiln_plain_draw(painter, p(background), p(rgba), None)
            _require(bad == 0, lib.kiln_plain_message(painter).decode(errors="replace"))
        finally:
            lib.kiln_plain_free(painter)
        return rgba


def main(path):
    """Prints what kiln-verify --digest prints of layers and tile tables; every array is read and checked."""
    lines = []
    with Bake(path) as bake:
        for (kind,) in bake._db.rows("SELECT role FROM stage_output WHERE layer IS NOT NULL ORDER BY role", "t"):
            layer = bake.layer(kind)
            for chunk in layer.chunks:
                for name in chunk.planes:
                    layer.plane(chunk, name)
            lines.append(f"layer {kind} {layer.digest.hex()}")
        tables = bake.tile_tables()
        for table in tables:
            table.lists()
            if bake.stage_state("tiles") == "fresh":
                table.visible_rows(bake.layer(), bake.layer("levels") if any("@" in name for name in table.chunks()) else None)
            lines.append(f"table {table.name} {table.digest.hex()}")
    print("\n".join(sorted(lines)))


if __name__ == "__main__":
    try:
        sys.exit(main(*sys.argv[1:]) if len(sys.argv) == 2 else f"usage: {sys.argv[0]} MANIFEST")
    except BakeError as e:
        sys.exit(f"splatkiln: {e}")
