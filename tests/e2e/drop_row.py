"""drop_row -- drops random rows one at a time and looks at what changed. Arguments: programs, manifest, how many, seed.

Only chunks under one parent cell may change, and only tables of cameras that see one of these chunks."""
import ctypes
import ctypes.util
import random
import sqlite3
import subprocess
import sys

bin_dir, path, count, seed = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
zstd = ctypes.CDLL(ctypes.util.find_library("zstd") or "libzstd.so.1")


def kiln(program, *args):
    subprocess.run([f"{bin_dir}/kiln-{program}", path, "--quiet", *args], check=True, stdout=subprocess.DEVNULL)


def chunks(db):
    """name -> (parent, the hashes of its planes)"""
    rows = db.execute(
        "SELECT c.name, c.parent, group_concat(p.name || hex(s.hash)) FROM stage_output o JOIN chunk c ON c.layer = o.layer"
        " JOIN plane p ON p.chunk = c.id JOIN plane_segment s ON s.plane = p.id WHERE o.role = 'baked' GROUP BY c.id")
    return {name: (parent, planes) for name, parent, planes in rows}


def tables(db):
    """camera -> (digest, names of the chunks that it sees)"""
    out = {}
    for camera, digest, raw_bytes, packed in db.execute(
            "SELECT t.camera, hex(t.digest), b.raw_bytes, b.packed FROM tile_table t JOIN tile_segment s ON s.tile_table = t.id"
            " JOIN blob b ON b.hash = s.hash WHERE s.name = 'chunks'"):
        raw = ctypes.create_string_buffer(raw_bytes + 1)
        zstd.ZSTD_decompress(raw, ctypes.c_size_t(raw_bytes), packed, ctypes.c_size_t(len(packed)))
        out[camera] = (digest, set(raw.raw[:raw_bytes].decode().split("\0")) - {""})
    return out


def look():
    db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        rows = db.execute("SELECT rows_read FROM scene").fetchone()[0]
        return rows, chunks(db), tables(db)
    finally:
        db.close()


def changed(before, after):
    return {k for k in before.keys() | after.keys() if before.get(k) != after.get(k)}


def is_under(name, parent):
    return name == parent or name.startswith(parent.rstrip("/") + "/") or parent in ("", "/")


rows, chunks0, tables0 = look()
drop = random.Random(seed)
for _ in range(count):
    row = drop.randrange(rows)
    for stage, *args in (("prune", "--drop-row", str(row)), ("chunk",), ("tiles",)):
        kiln(stage, *args)
    _, chunks1, tables1 = look()
    names = changed(chunks0, chunks1)
    if not names:
        sys.exit(f"dropping row {row} changed no chunk")
    parents = {(chunks0.get(n) or chunks1[n])[0] for n in names}
    shortest = min(parents, key=len)
    if not all(is_under(n, shortest) for n in names):
        sys.exit(f"dropping row {row} changed chunks under several cells: {sorted(names)}")
    for camera in changed({c: t[0] for c, t in tables0.items()}, {c: t[0] for c, t in tables1.items()}):
        if not names & (tables0[camera][1] | tables1[camera][1]):
            sys.exit(f"dropping row {row} changed the table of '{camera}', which sees none of {sorted(names)}")
    seen = [c for c in tables0 if names & tables0[c][1]]
    print(f"row {row}: {len(names)} of {len(chunks0)} chunks under '{shortest}', {len(seen)} cameras see them")
