"""The python of tests/unit/list_gpus.t: `py FUNCTION [argument...]` of tests/cases.sh calls one of these."""
import json, sys


def rows(text):
    rows = json.loads(text)
    assert [r["number"] for r in rows] == [0, 1, 2, 3, None], rows
    assert rows[0]["pci"] == "0000:1a:00.0" and rows[0]["free_bytes"] == 900 << 20, rows
    assert rows[0]["ecc"] is True and rows[0]["repair"] == "none" and rows[0]["mode"] == "default", rows
    assert rows[1]["instance"] and rows[1]["gpu"] == 2 and rows[4]["state"] == "lost", rows


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
