"""The python of tests/e2e/verify.t: `py FUNCTION [argument...]` of tests/cases.sh calls one of these."""
import sqlite3, sys


def damage(statements):
    db = sqlite3.connect("bad.db")

    def flip(id):  # one byte in the middle
        packed = bytearray(db.execute("SELECT packed FROM blob WHERE id = ?", (id,)).fetchone()[0])
        packed[len(packed) // 2] ^= 0x10
        db.execute("UPDATE blob SET packed = ? WHERE id = ?", (bytes(packed), id))

    def blob_of(plane, chunk):
        return db.execute(
            "SELECT blob.id FROM plane JOIN plane_segment ON plane_segment.plane = plane.id JOIN blob ON blob.hash ="
            " plane_segment.hash JOIN chunk ON chunk.id = plane.chunk WHERE plane.name = ? AND ordinal = ?"
            " ORDER BY blob.id DESC",
            (plane, chunk),
        ).fetchone()[0]

    def table_blob(name):
        return db.execute(
            "SELECT blob.id FROM tile_segment JOIN blob USING (hash) WHERE name = ? ORDER BY blob.id", (name,)
        ).fetchone()[0]

    exec(statements)
    db.commit()


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
