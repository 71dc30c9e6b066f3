"""database -- a manifest as rows and arrays that were checked, because it may be a stranger's (schema/SCHEMA.md).

Checked are the text of the tables that are read, the types of columns, sizes, counts and the hash of every blob. What is wrong
raises BakeError. The manifest is opened read-only. Blobs are unpacked by the Python modules zstandard and xxhash, or by libsplatkiln.
"""
from __future__ import annotations

import ctypes
import hashlib
import os
import pathlib
import sqlite3
import stat
from typing import Any, Optional, Sequence, Union

import numpy as np

from splatkiln.arrays import Array
from splatkiln.errors import BakeError, require
from splatkiln.native import Blob, Error, needed

try:
    import zstandard  # type: ignore[import]
except ImportError:
    zstandard = None
try:
    import xxhash  # type: ignore[import]
except ImportError:
    xxhash = None

APPLICATION_ID, SCHEMA_VERSIONS = 0x4B494C4E, (1, 2)
BLOB_MAX = 64 << 20  # bytes of one blob, and of every segment of an array but the last
# The tables that are read, and the first 16 digits of the SHA-256 of the text that manifest.sql makes them with.
TABLES = {"blob": "def9824b967e99ab", "scene": "2bcfca7141cf5746", "camera": "a22a8650b667a647", "layer": "7811c733ca34fb70",
          "chunk": "6dc453a4c9aa868f", "plane": "698c1b4c44b715dc", "plane_segment": "96fa9adbe181fc20", "stage": "e2a5a2fc29fd5288",
          "stage_output": "4ae45ee2ec3457b4", "tile_table": "1e4fd9ce841e3879", "tile_band": "12e1bb2439d5b772", "tile_segment": "f99989cc5810183f"}
TABLES_OF_2 = {"level_origin": "d7be2972d4a04604", "level_error": "a127f098340a3db7"}  # what version 2 has beside them


def hash_of(data: bytes) -> bytes:
    """XXH3-128 of bytes: 16 bytes, most significant first."""
    if xxhash:
        return bytes(xxhash.xxh3_128_digest(data))
    return bytes(needed("a hash, without the Python module xxhash,").kiln_hash_of(bytes(data), len(data)).bytes)


def unpack(packed: bytes, raw_bytes: int, elem: int, digest: bytes) -> Array:
    """The bytes of a blob, unpacked, unshuffled and compared with their hash. uint8 [raw_bytes]"""
    require(elem in (1, 2, 4, 8) and 0 <= raw_bytes <= BLOB_MAX and raw_bytes % elem == 0, f"blob {digest.hex()} has an impossible size")
    if not (zstandard and xxhash):
        raw, err = np.empty(raw_bytes, np.uint8), Error()
        blob = Blob((ctypes.c_ubyte * 16).from_buffer_copy(digest), raw_bytes, elem, len(packed), packed)
        require(needed("a blob, without the Python modules zstandard and xxhash,").kiln_blob_unpack(blob, raw.ctypes.data, err) == 0, err.msg.decode(errors="replace"))
        return raw
    try:
        require(zstandard.frame_content_size(packed) == raw_bytes, f"blob {digest.hex()} has a frame of another size")
        shuffled = zstandard.ZstdDecompressor().decompress(packed, max_output_size=max(raw_bytes, 1))
    except zstandard.ZstdError as e:
        raise BakeError(f"blob {digest.hex()} is damaged: {e}") from e
    raw = np.ascontiguousarray(np.frombuffer(shuffled, np.uint8).reshape(elem, -1).T).reshape(-1)
    require(len(raw) == raw_bytes and hash_of(raw.tobytes()) == digest, f"blob {digest.hex()} is damaged: its hash is another one")
    return raw


def _open(path: Union[str, os.PathLike[str]]) -> tuple[sqlite3.Connection, str, int]:
    """A read-only connection with the settings that SCHEMA.md asks for ("A stranger's manifest")."""
    path = pathlib.Path(path).resolve()
    require(path.is_file(), f"there is no manifest '{path}'")
    for suffix in ("-wal", "-shm", "-journal"):
        try:
            mode = os.lstat(f"{path}{suffix}").st_mode
        except FileNotFoundError:
            continue
        require(stat.S_ISREG(mode), f"'{path}{suffix}' is no regular file")
    journal = pathlib.Path(f"{path}-journal")
    if journal.exists():
        require(journal.read_bytes()[-8:] != bytes.fromhex("d9d505f920a163d7"), f"'{journal}' names another file")
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


class Database:
    """Queries whose rows have the types that were asked for, and that end."""

    KINDS = {"i": int, "f": float, "t": str, "b": bytes}

    def __init__(self, path: Union[str, os.PathLike[str]]) -> None:
        self.db, self.path, self.most_steps = _open(path)
        self.steps = 0
        self.db.set_progress_handler(self._step, 1_000_000)
        try:
            self._check_tables()
        except BaseException:
            self.db.close()
            raise

    def _step(self) -> bool:
        self.steps += 1_000_000
        return self.steps > self.most_steps

    def _check_tables(self) -> None:
        (application,), = self.rows("PRAGMA application_id", "i")
        (version,), = self.rows("PRAGMA user_version", "i")
        require(application == APPLICATION_ID, f"'{self.path}' is not a manifest")
        require(version in SCHEMA_VERSIONS, f"'{self.path}' has schema version {version}; this file reads {SCHEMA_VERSIONS}")
        self.version = version
        there = {name: (kind, of, sql) for kind, name, of, sql in self.rows("SELECT type, name, tbl_name, sql FROM sqlite_schema", "tttT")}
        for name, digest in (TABLES | TABLES_OF_2 if version > 1 else TABLES).items():
            kind, of, sql = there.get(name, ("", "", ""))
            require((kind, of) == ("table", name) and hashlib.sha256((sql or "").encode()).hexdigest()[:16] == digest,
                     f"the table '{name}' of '{self.path}' is not that of a manifest")

    def rows(self, sql: str, kinds: str, *key: Any) -> list[Any]:
        """kinds: a letter a column: i integer, f float, t text, b bytes; in upper case NULL is allowed."""
        self.steps = 0
        try:
            rows = self.db.execute(sql, key).fetchall()
        except (sqlite3.Error, UnicodeDecodeError) as e:
            raise BakeError(f"'{self.path}' cannot be read: {e}") from e
        for row in rows:
            for value, kind in zip(row, kinds, strict=True):
                require((value is None and kind.isupper()) or type(value) is self.KINDS[kind.lower()], f"'{self.path}' has a value of another type")
                require(not isinstance(value, str) or "\0" not in value, f"'{self.path}' has a text with a NUL")
                require(not isinstance(value, float) or np.isfinite(value), f"'{self.path}' has a number that is not finite")
        return rows

    def array(self, segments: Sequence[tuple[bytes, Optional[int]]], total: int, dtype: Any) -> Array:
        """Segments (hash, bytes or None), in order, joined: [total / size of dtype]."""
        want = [min(BLOB_MAX, total - at) for at in range(0, total, BLOB_MAX)]
        require(len(segments) == len(want), "an array lacks segments, or has too many")
        parts = []
        for (digest, listed), size in zip(segments, want):
            found = self.rows("SELECT raw_bytes, elem, packed FROM blob WHERE hash = ?", "iib", digest)
            require(len(found) == 1, f"blob {digest.hex()} is missing")
            raw_bytes, elem, packed = found[0]
            require(raw_bytes == size and listed in (None, size), f"blob {digest.hex()} has {raw_bytes} bytes, not {size}")
            parts.append(unpack(packed, raw_bytes, elem, digest))
        raw = parts[0] if len(parts) == 1 else np.concatenate(parts) if parts else np.empty(0, np.uint8)
        return raw.view(dtype)
