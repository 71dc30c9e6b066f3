"""The python of tests/e2e/ram_list.t: `py FUNCTION [argument...]` of tests/cases.sh calls one of these."""
import sqlite3, sys


def stale():
    c = sqlite3.connect("k.db")
    c.execute("UPDATE stage SET state = ?, input_key = zeroblob(16) WHERE name = ?", ("stale", "chunk"))
    c.commit()


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
