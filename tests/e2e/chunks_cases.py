"""The python of tests/e2e/chunks.t: `py FUNCTION [argument...]` of tests/cases.sh calls one of these."""
import json, os, sqlite3, sys


def damage(path):
    db = sqlite3.connect(path, isolation_level=None)
    db.execute(
        "UPDATE blob SET packed = zeroblob(length(packed)) WHERE hash = (SELECT hash FROM tile_segment WHERE "
        "name = 'rank_delta' LIMIT 1)"
    )
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def remove_array(folder):
    t = json.load(open(folder + "/index.json"))["tile_tables"][1]
    os.remove(folder + "/" + t["bands"][0]["arrays"]["rank_delta"]["file"])


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
