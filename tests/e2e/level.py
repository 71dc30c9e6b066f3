"""level -- writes the rows of one level of every baked chunk as a PLY, in the order of their first source rows.
Arguments: manifest, level, PLY."""
import array
import ctypes
import ctypes.util
import sqlite3
import sys

path, level, out = sys.argv[1], int(sys.argv[2]), sys.argv[3]
zstd = ctypes.CDLL(ctypes.util.find_library("zstd") or "libzstd.so.1")
db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)


def plane(chunk, name, count):
    """Component after component, as lists."""
    rows = db.execute("SELECT blob.raw_bytes, packed FROM plane JOIN plane_segment ON plane = plane.id JOIN blob USING (hash) "
                      "WHERE chunk = ? AND name = ? ORDER BY segment", (chunk, name)).fetchall()
    (size, packed), = rows
    raw = ctypes.create_string_buffer(size)
    assert zstd.ZSTD_decompress(raw, ctypes.c_size_t(size), packed, ctypes.c_size_t(len(packed))) == size
    n, plain = size // 4, bytearray(size)
    for byte in range(4):
        plain[byte::4] = raw.raw[byte * n:(byte + 1) * n]
    values = array.array("I", bytes(plain))  # bits, of floats too
    return [values[i:i + count] for i in range(0, n, count)]


QUERY = ("SELECT chunk.id, name, chunk.count FROM stage_output JOIN chunk USING (layer) WHERE role = ? ORDER BY ordinal")
leaves = [name for _, name, count in db.execute(QUERY, ("baked",)) if count]
chunks = {name: (ident, count) for ident, name, count in db.execute(QUERY, ("levels",))}
rows = []
for leaf in leaves:
    ident, count = chunks[f"{leaf}@{level}"]
    sh = plane(ident, "shN", count)
    # coefficient-major: (1,-1) r g b, ...; a PLY has all of red first
    rest = [sh[3 * i + colour] for colour in range(3) for i in range(len(sh) // 3)]
    parts = (plane(ident, "means", count) + plane(ident, "sh0", count) + rest + plane(ident, "opacity_logits", count) +
             plane(ident, "log_scales", count) + plane(ident, "quats", count))
    rows += zip(*plane(ident, "source_row", count), *parts)
rows.sort()
names = (["x", "y", "z", "f_dc_0", "f_dc_1", "f_dc_2"] + [f"f_rest_{i}" for i in range(len(rest))] + ["opacity"] +
         [f"scale_{i}" for i in range(3)] + [f"rot_{i}" for i in range(4)])
with open(out, "wb") as f:
    f.write(f"ply\nformat binary_little_endian 1.0\nelement vertex {len(rows)}\n".encode())
    f.write("".join(f"property float {name}\n" for name in names).encode() + b"end_header\n")
    array.array("I", [v for row in rows for v in row[1:]]).tofile(f)
print(len(rows))
