"""The python of tests/e2e/columns.t: `py FUNCTION [argument...]` of tests/cases.sh calls one of these."""
import sqlite3, sys


def long_names(path):
    db = sqlite3.connect(path)
    db.execute("DELETE FROM photo")
    db.execute(
        "UPDATE camera SET name = 'a_folder_whose_name_is_long/and_one_in_it/picture_one_of_the_most' WHERE "
        "name = 'view_01'"
    )
    db.execute("UPDATE camera SET name = ? WHERE name = 'view_02'", ("\u00e4\u00f6\u00fc" * 20,))
    db.commit()


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
