"""The python of tests/e2e/stranger.t: `py FUNCTION [argument...]` of tests/cases.sh calls one of these."""
import ctypes, os, shutil, sqlite3, struct, sys


def rehash(path, layer, plane_name, which, value_hex):
    class Hash128(ctypes.Structure):
        _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]

    z, x = ctypes.CDLL("libzstd.so.1"), ctypes.CDLL("libxxhash.so.0").XXH3_128bits
    x.restype, x.argtypes = Hash128, [ctypes.c_char_p, ctypes.c_size_t]
    for f in (z.ZSTD_compress, z.ZSTD_decompress, z.ZSTD_compressBound):
        f.restype = ctypes.c_size_t
    db = sqlite3.connect(path, isolation_level=None)
    for plane, old, raw, packed in db.execute(
        "SELECT plane, s.hash, blob.raw_bytes, packed FROM plane_segment s JOIN plane ON plane.id = s.plane"
        " JOIN blob ON blob.hash = s.hash JOIN chunk ON chunk.id = plane.chunk JOIN layer ON layer.id = chunk.layer"
        " WHERE layer.kind LIKE ? AND plane.name = ?",
        (layer, plane_name),
    ).fetchall():
        out = ctypes.create_string_buffer(raw)
        assert z.ZSTD_decompress(out, ctypes.c_size_t(raw), packed, ctypes.c_size_t(len(packed))) == raw
        n = raw // 4
        data = bytearray(raw)
        for b in range(4):
            data[b::4] = out.raw[b * n : (b + 1) * n]
        at = 0 if which == "first" else raw - 4
        data[at : at + 4] = bytes.fromhex(value_hex)
        shuffled = b"".join(bytes(data[b::4]) for b in range(4))
        room = ctypes.create_string_buffer(z.ZSTD_compressBound(ctypes.c_size_t(raw)))
        size = z.ZSTD_compress(room, ctypes.c_size_t(len(room)), shuffled, ctypes.c_size_t(raw), 1)
        h = x(bytes(data), raw)
        new = struct.pack(">QQ", h.high, h.low)
        db.execute(
            "INSERT OR IGNORE INTO blob (hash, elem, raw_bytes, packed) VALUES (?, 4, ?, ?)",
            (new, raw, room.raw[:size]),
        )
        db.execute("UPDATE plane_segment SET hash = ? WHERE plane = ?", (new, plane))


def other_schema(path):
    other = path + ".other"
    db = sqlite3.connect(other, isolation_level=None)
    db.executescript(
        "PRAGMA page_size = 65536; PRAGMA journal_mode = WAL; PRAGMA wal_autocheckpoint = 0; PRAGMA "
        "application_id = 0x4b494c4e;"
        "PRAGMA user_version = 1; CREATE TABLE own (a)"
    )
    shutil.copy(other + "-wal", path + "-wal")


def journal(path, victim):
    magic, name = bytes.fromhex("d9d505f920a163d7"), victim.encode()
    head = magic + struct.pack(">IIIII", 0, 0, os.path.getsize(path) // 65536, 512, 65536)
    tail = struct.pack(">I", 0x40000000 // 65536 + 1) + name + struct.pack(">II", len(name), sum(name)) + magic
    open(path + "-journal", "wb").write(head.ljust(512, b"\0") + tail)


def mutate(path, sql):
    db = sqlite3.connect(path, isolation_level=None)
    db.executescript(
        "PRAGMA writable_schema = ON; PRAGMA ignore_check_constraints = ON; PRAGMA foreign_keys = OFF;" + sql
    )
    db.close()


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
