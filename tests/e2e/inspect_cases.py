"""The python of tests/e2e/inspect.t: `py FUNCTION [argument...]` of tests/cases.sh calls one of these."""
import json, sqlite3, sys


def info(path):
    d = json.load(open(path))
    assert d["version"] == 1
    assert {s["name"]: s["state"] for s in d["stages"]}["render"] == "fresh"
    assert d["counts"]["rows_read"] == 2000 and d["counts"]["cameras"] == 9 and d["counts"]["chunks"] > 1
    assert d["counts"]["source"] - d["counts"]["pruned_away"] == d["counts"]["pruned"] == d["counts"]["baked"]
    assert d["profile"]["name"] == "inria" and len(d["cameras"]) == 9
    assert sorted(c["name"] for c in d["cameras"]) == [c["name"] for c in d["cameras"]]
    assert all(c["visible"] > 0 and c["pairs"] > 0 and c["split"] in ("train", "test") for c in d["cameras"])
    tiles = json.load(open("tiles.json"))
    assert [(l["what"], l["units"]) for l in tiles["lists"]] == [("counting pairs", 9), ("tile tables", 18)], tiles[
        "lists"
    ]
    assert all(
        0 < l["busy_s"] and 0 < l["wall_s"] and 0 < l["store_s"] and l["stored_bytes"] > 0 for l in tiles["lists"]
    )
    assert d["test"]["views"] == 0 and d["test"]["psnr"] is None  # there are no photos
    assert d["fast"] is None and not any(c["fast"] for c in d["cameras"])


def make_fast(path):
    db = sqlite3.connect(path)
    db.execute("UPDATE image SET device_kind = 'cuda-fast' WHERE camera <> 'cam0'")
    keys = [k for k, in db.execute("SELECT key FROM image WHERE device_kind = 'cuda-fast' ORDER BY camera")]
    for key, fast_db in zip(keys, ['"inf"', "64.26", "71.5"]):
        n = db.execute(
            "UPDATE unit SET counters = json_set(counters, '$.fast_db', json(?)) WHERE key = ?", (fast_db, key)
        ).rowcount
        assert n == 1, n
    db.commit()


def fast_info(path):
    d = json.load(open(path))
    assert d["fast"] == {"images": 8, "measured": 3, "least_db": 64.26}, d["fast"]
    assert {c["name"] for c in d["cameras"] if not c["fast"]} == {"cam0"}, d["cameras"]


def times_apart(path):
    db = sqlite3.connect(path)
    db.execute("UPDATE run SET start_ns = ?, stop_ns = ?", (-(2**63), 2**63 - 1))
    db.execute("UPDATE stage SET finished_ns = ?", (-(2**63),))
    db.commit()


def largest_times(path):
    db = sqlite3.connect(path)
    db.execute("UPDATE run SET start_ns = 0, stop_ns = ?", (2**63 - 1,))
    db.execute("UPDATE stage SET finished_ns = ?", (2**63 - 1,))
    db.commit()


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
