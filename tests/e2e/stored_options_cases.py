"""The python of tests/e2e/stored_options.t: `py FUNCTION [argument...]` of tests/cases.sh calls one of these."""
import sqlite3, sys


def odd_parameters(path):
    db = sqlite3.connect(path)
    db.execute(
        "INSERT INTO parameter VALUES ('prune', 'old', '1'), ('chunk', 'max', 'many'), ('import', 'photos', ?)",
        ("/p" * 900,),
    )
    db.commit()


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
