"""The python of tests/e2e/gc.t: `py FUNCTION [argument...]` of tests/cases.sh calls one of these."""
import fcntl, json, os, sqlite3, struct, subprocess, sys, time


def report(json_path, grown, small, path):
    r = json.load(open(json_path))
    assert r["dropped"]["layers"] == {"all": 2, "pruned": 1, "baked": 1}, r
    assert r["dropped"]["blobs"] > 0 < r["dropped"]["units"]["chunk"], r
    assert (r["file_bytes_before"], r["file_bytes"]) == (int(grown), int(small)), r
    assert r["vacuum"] == "done" and r["free_bytes"] == 0 and r["dry_run"] is False, r
    assert r["vacuum_needs_bytes"] >= int(small) and r["dropped_bytes"] > 0
    db = sqlite3.connect("file:%s?mode=ro" % path, uri=True)
    assert r["kept"]["blobs"] == db.execute("SELECT count(*) FROM blob").fetchone()[0]
    assert r["kept"]["units"]["all"] == db.execute("SELECT count(*) FROM unit").fetchone()[0]
    named = "SELECT hash FROM unit_output UNION SELECT hash FROM plane_segment UNION SELECT hash FROM tile_segment"
    assert {h for h, in db.execute(named)} == {h for h, in db.execute("SELECT hash FROM blob")}


def runs_of_report():
    r = json.load(sys.stdin)
    assert (
        r["dropped"]["runs"] == {"all": 8, "chunk": 2, "tiles": 2, "render": 2, "export": 2}
        and r["kept"]["runs"]["all"] == 7
    ), r
    assert r["dropped"]["units"]["all"] == r["dropped"]["blobs"] == 0 < r["dropped_run_bytes"], r


def forget_units(path):
    db = sqlite3.connect(path)
    db.execute("PRAGMA foreign_keys = ON")
    assert db.execute("DELETE FROM unit WHERE name = 'units of the current output'").rowcount == 7
    db.commit()


def beside_reader(gc, path):
    reader = sqlite3.connect("file:%s?mode=ro" % path, uri=True, isolation_level=None)
    count = lambda: reader.execute("SELECT count(*), sum(length(packed)) FROM blob").fetchone()
    reader.execute("BEGIN")
    before = count()
    size = os.path.getsize(path)
    p = subprocess.run([gc, path], capture_output=True, text=True)
    assert p.returncode == 0, p
    assert "when the programs that read it now have ended" in p.stderr, p
    assert count() == before
    reader.execute("COMMIT")
    assert count() < before
    reader.close()
    assert subprocess.run([gc, path]).returncode == 0
    assert os.path.getsize(path) < size, (os.path.getsize(path), size)


def hold(path):
    fd = os.open(path, os.O_RDWR | os.O_CREAT)
    fcntl.fcntl(fd, fcntl.F_OFD_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0))
    os.write(fd, b"pid %d\nhost here\nstage test\nstart now\n" % os.getpid())
    time.sleep(600)


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
