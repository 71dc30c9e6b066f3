"""The python of tests/e2e/lod.t: `py FUNCTION [argument...]` of tests/cases.sh calls one of these."""
import json, random, sqlite3, struct, sys


def levels(json_path, made_path):
    rows, made = json.load(open(json_path))["levels"]["rows"], json.load(open(made_path))["levels"]
    assert [(r["level"], r["nodes"], r["gaussians"]) for r in rows[1:]] == [
        (l["level"], l["nodes"], l["gaussians"]) for l in made
    ]
    assert rows[0]["drawn"] == rows[0]["gaussians"] == 6000 and rows[-1]["drawn"] == rows[-1]["gaussians"]
    assert all(a["drawn"] >= b["drawn"] and a["bytes"] > 0 for a, b in zip(rows, rows[1:]))
    figures = json.load(open(json_path))["levels"]["figures"]  # near, median and far, of three sizes
    assert [(f["place"], f["size"]) for f in figures] == [
        (p, s) for s in (1, 0.5, 0.25) for p in ("near", "median", "far")
    ]
    near, median, far = figures[:3]
    assert (
        near["footprint"] <= median["footprint"] <= far["footprint"]
        and 1.9 < figures[4]["footprint"] / median["footprint"] < 2.1
    )
    for row in rows[1:]:
        assert len(row["psnr"]) == 9 and all(v > 5 for v in row["psnr"]), row


def spoil(path, change):
    db = sqlite3.connect(path)
    db.execute(
        change + " AND unit IN (SELECT id FROM unit WHERE stage = ? AND name LIKE ? LIMIT 1)", ("lod", "chunk %")
    )
    db.commit()


def due_units(old_path, new_path, json_path):
    def chunks(path, role):
        db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        return {
            name: (parent, planes)
            for name, parent, planes in db.execute(
                "SELECT c.name, c.parent, group_concat(p.name || hex(s.hash)) FROM stage_output o JOIN chunk c ON "
                "c.layer = o.layer"
                " JOIN plane p ON p.chunk = c.id JOIN plane_segment s ON s.plane = p.id WHERE o.role = ? GROUP BY c.id",
                (role,),
            )
        }

    old, new = chunks(old_path, "baked"), chunks(new_path, "baked")
    assert old.keys() == new.keys()
    due = {name for name in old if old[name] != new[name]}
    assert len(due) == 1, due
    before, after = chunks(old_path, "levels"), chunks(new_path, "levels")
    above = {name.split("@")[0]: parent for name, (parent, _) in after.items()}
    (node,) = due
    while node := above[node]:
        due.add(node)
    assert len(due) > 2, due
    done = json.load(open(json_path))["units"]["done"]
    assert done == len(due), (done, due)
    assert {name.split("@")[0] for name in after if before[name] != after[name]} == due


def degrees():
    random.seed(5)
    for degree in range(5):
        names = ["x", "y", "z", "f_dc_0", "f_dc_1", "f_dc_2"] + [
            f"f_rest_{i}" for i in range(3 * ((degree + 1) ** 2 - 1))
        ]
        names += ["opacity", "scale_0", "scale_1", "scale_2", "rot_0", "rot_1", "rot_2", "rot_3"]
        with open(f"sh{degree}.ply", "wb") as f:
            f.write(
                (
                    "ply\nformat binary_little_endian 1.0\nelement vertex 120\n"
                    + "".join(f"property float {n}\n" for n in names)
                    + "end_header\n"
                ).encode()
            )
            for _ in range(120):
                f.write(
                    struct.pack(
                        f"<{len(names)}f",
                        *(random.uniform(-4, -2) if n.startswith("scale") else random.uniform(-1, 1) for n in names),
                    )
                )


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
