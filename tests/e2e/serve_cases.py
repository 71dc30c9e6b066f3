"""The python of tests/e2e/serve.t: `py FUNCTION [argument...]` of tests/cases.sh calls one of these."""
import os, sqlite3, sys


def stranger(path, folder):
    db, t = sqlite3.connect(path), folder
    evil = "</script><img src=x onerror=alert(1)>\"'\u2028"
    db.execute("UPDATE scene SET name = ?", ("scene" + evil,))

    def photo(camera, path, listed):
        (old,) = db.execute("SELECT path FROM photo WHERE camera = ?", (camera,)).fetchone()
        db.execute("UPDATE photo SET path = ? WHERE camera = ?", (path, camera))
        if listed:
            db.execute("UPDATE source_file SET path = ? WHERE path = ?", (path, old))

    photo("view_00", t + "/secret.png", False)
    photo("view_01", t + "/pipe.png", True)
    photo("view_02", "/etc/passwd", True)
    photo("view_03", t + "/link.png", True)
    os.symlink(t, t + "/demo/bake/renders/outside")
    db.execute("UPDATE image SET path = 'renders/outside/secret.png' WHERE camera = 'view_00'")
    os.mkfifo(t + "/demo/bake/renders/pipe.png")
    db.execute("UPDATE image SET path = 'renders/pipe.png' WHERE camera = 'view_01'")
    db.execute("PRAGMA foreign_keys = OFF")
    for table, column in (("camera", "name"), ("photo", "camera"), ("image", "camera"), ("tile_table", "camera")):
        db.execute(f"UPDATE {table} SET {column} = {column} || ? WHERE {column} = 'view_03'", (evil,))
    db.commit()


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
