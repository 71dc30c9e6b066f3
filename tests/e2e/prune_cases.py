"""The python of tests/e2e/prune.t: `py FUNCTION [argument...]` of tests/cases.sh calls one of these."""
import json, math, shutil, sqlite3, struct, sys


def named(path, json_path):
    db = sqlite3.connect(path)
    source = {
        (c, p): h
        for c, p, h in db.execute(
            """SELECT chunk.name, plane.name, hash FROM plane_segment JOIN plane ON plane.id = plane
    JOIN chunk ON chunk.id = chunk JOIN layer ON layer.id = layer WHERE kind IN ('source', 'spacing')"""
        )
    }
    units = db.execute(
        "SELECT unit.name, o.name, hash FROM unit_output o JOIN unit ON unit.id = unit WHERE stage = 'prune' "
        "AND unit.name LIKE 'block %'"
    )
    packed = [p for u, p, h in units if p not in ("tally", "bounds") and source[u[6:], p] != h]
    stored = sum(l["stored_bytes"] for l in json.load(open(json_path))["lists"] if l["what"] == "pruning")
    print(len(packed), stored < 10000)


def lost_blob(path, copy):
    shutil.copy(path, copy)
    db = sqlite3.connect(copy)
    db.execute("DELETE FROM unit WHERE stage = 'prune'")
    db.execute("DELETE FROM stage WHERE name = 'prune'")
    db.execute(
        "DELETE FROM blob WHERE hash = (SELECT hash FROM plane_segment JOIN plane ON plane.id = plane JOIN "
        "chunk ON chunk.id = chunk JOIN layer ON layer.id = layer WHERE kind = 'source' AND plane.name = 'shN' LIMIT 1)"
    )
    db.commit()


def count(path):
    data = open(path, "rb").read()
    head, body = data.split(b"end_header\n", 1)
    names = [l.split()[2].decode() for l in head.splitlines() if l.startswith(b"property")]
    at = [names.index(c) for c in ("x", "y", "z", "opacity", "f_dc_0")]
    kept = [0, 0, 0, 0]
    for row in struct.iter_unpack("<%df" % len(names), body):
        x, y, z, opacity, red = (row[i] for i in at)
        box, sphere = z <= 0, x * x + y * y + z * z < 4
        value = 1 / (1 + math.exp(-opacity)) >= 0.5 and 0.5 + 0.28209479177387814 * red < 0.5
        for i, k in enumerate((box, box and sphere, box and sphere and value)):
            kept[i] += k
    print(*kept[:3])


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
