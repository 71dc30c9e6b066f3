"""The python of tests/e2e/quote.t: `py FUNCTION [argument...]` of tests/cases.sh calls one of these."""
import json, os, re, shutil, sqlite3, struct, sys

from splat_columns import SPLAT_COLUMNS


def are_clean(folder, group):
    for name in sorted(n for n in os.listdir(folder) if n.startswith(group + ".")):
        text = open(os.path.join(folder, name), "rb").read().decode("utf-8", "surrogateescape")
        bad = re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\udc80-\udcff]", text)
        forged = re.search("^kiln-import: done", text, re.M)
        if bad or forged:
            at = (bad or forged).start()
            sys.exit(
                "%s: %s in %r" % (name, repr(bad.group()) if bad else "a forged line", text[max(0, at - 60) : at + 40])
            )


def write_ply(path, where):
    evil = os.environb[b"EVIL"]
    line = evil.replace(b"\n", b"")
    head = [
        b"ply",
        b"format " + (line if where == "format" else b"binary_little_endian 1.0"),
        b"comment " + (line if where == "comment" else b"x"),
        b"element " + (line if where == "element" else b"vertex") + b" 3",
    ]
    names = SPLAT_COLUMNS
    head += [b"property float " + n.encode() for n in names]
    extra = {"column": line, "utf8": "n\x9b\u202e".encode(), "type": b"n"}.get(where)
    if extra:
        head.append(b"property " + (line if where == "type" else b"float") + b" " + extra)
    head.append(b"end_header")
    with open(path, "wb") as f:
        f.write(b"\n".join(head) + b"\n")
        for i in range(3):
            row = [i, 0, 0, 1, 1, 1, 2, -3, -3, -3, 1, 0, 0, 0] + ([7] if extra else [])
            f.write(struct.pack("<%df" % len(row), *row))


def cameras(folder):
    evil = os.environ["EVIL"]
    unit = [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 3], [0, 0, 0, 1]]

    def transforms(path, **more):
        frame = {"file_path": more.pop("file", "a.png"), "transform_matrix": unit}
        json.dump(dict({"w": 32, "h": 24, "fl_x": 30, "frames": [frame]}, **more), open(path, "w"))

    transforms(folder + "/name.json", file=evil)
    transforms(folder + "/model.json", camera_model=evil)
    transforms(folder + "/splats.json", ply_file_path=evil)
    open(folder + "/syntax.json", "w").write('{"frames": [' + evil + "]}")
    json.dump(
        [
            {
                "id": 0,
                "img_name": evil,
                "width": 32,
                "height": 24,
                "position": [0, 0, 3],
                "rotation": [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
                "fx": 30,
                "fy": 30,
            }
        ],
        open(folder + "/cameras.json", "w"),
    )


def columns(path, folder):
    db = sqlite3.connect(path)
    db.execute("INSERT INTO quarantine VALUES (randomblob(16), 'render', 'camera x', 3, 'the CPU', 'signal 9', 1)")
    db.commit()
    columns = []
    for (table,) in db.execute(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
    ).fetchall():
        columns += [(table, column[1]) for column in db.execute("PRAGMA table_info(%s)" % table) if column[2] == "TEXT"]
    db.close()
    for column in columns:
        copy = "%s/%s.%s/x.db" % (folder, *column)
        os.makedirs(os.path.dirname(copy))
        shutil.copy(path, copy)
        db = sqlite3.connect(copy)
        db.execute("PRAGMA ignore_check_constraints = on")
        db.execute("UPDATE OR IGNORE %s SET %s = ?" % column, [os.environ["EVIL"]])
        db.commit()
        db.close()
        print(*column)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
