"""The python of tests/e2e/lod_visibility.t: `py FUNCTION [argument...]` of tests/cases.sh calls one of these."""
import sqlite3, sys


def planes(path):
    db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)

    def chunks(role):
        return db.execute(
            "SELECT c.name, c.count, group_concat(p.name) FROM stage_output o JOIN chunk c ON c.layer = o.layer "
            "JOIN plane p ON"
            " p.chunk = c.id WHERE o.role = ? GROUP BY c.id ORDER BY c.ordinal",
            (role,),
        ).fetchall()

    baked, seen, levels = chunks("baked"), chunks("visibility"), chunks("levels")
    assert [c[:2] for c in baked] == [c[:2] for c in seen] and len(seen) > 8
    assert all(sorted(c[2].split(",")) == ["prominence", "visibility"] for c in seen)
    assert all({"prominence", "visibility"} <= set(c[2].split(",")) for c in levels)


def changed_chunks(old_path, new_path, json_path):
    def chunks(path, role):
        db = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        return {
            name: planes
            for name, planes in db.execute(
                "SELECT c.name, group_concat(p.name || hex(s.hash)) FROM stage_output o JOIN chunk c ON c.layer = "
                "o.layer"
                " JOIN plane p ON p.chunk = c.id JOIN plane_segment s ON s.plane = p.id WHERE o.role = ? GROUP BY c.id",
                (role,),
            )
        }

    def changed(role):
        old, new = (chunks(path, role) for path in (old_path, new_path))
        return {name for name in old if old[name] != new[name]}, len(old)

    baked, n = changed("baked")
    seen, _ = changed("visibility")
    merged = {name.split("@")[0] for name in changed("levels")[0]}
    leaves = set(chunks(old_path, "baked"))
    assert len(baked) == 1 and len(seen) < n / 2, (baked, seen, n)
    assert merged & leaves == baked | seen, (merged & leaves, baked, seen)


def spoil(path, unit_name, due="", output_name="%"):
    db = sqlite3.connect(path, isolation_level=None)
    unit, output, n = db.execute(
        "SELECT u.id, o.name, o.raw_bytes FROM unit u JOIN unit_output o ON o.unit = u.id WHERE u.stage = 'lod'"
        " AND u.name LIKE ? AND o.name LIKE ? ORDER BY o.raw_bytes DESC, o.name DESC",
        (unit_name + "%", output_name),
    ).fetchone()
    (other,) = db.execute(
        "SELECT s.hash FROM plane p JOIN plane_segment s ON s.plane = p.id WHERE p.name = 'opacity_logits' "
        "AND p.raw_bytes = ?",
        (n,),
    ).fetchone()
    assert (
        db.execute("UPDATE unit_output SET hash = ? WHERE unit = ? AND name = ?", (other, unit, output)).rowcount == 1
    )
    if due == "due":
        db.execute("UPDATE stage SET input_key = randomblob(16) WHERE name = 'lod'")


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
