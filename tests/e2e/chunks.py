"""What tests/e2e/chunks.t asks of a folder of kiln-export --format chunks: python3 chunks.py FOLDER TABLES [levels]

index.json fits schema/chunks.schema.json, the files that it names are there and are all that is there, and its TABLES tile tables
name Gaussians of its chunks; levels of detail are there if asked for, and a tree. The schema itself is asked, too: what is taken away or changed must not fit."""
import array
import copy
import json
import os
import re
import sys

schema = json.load(open("schema/chunks.schema.json"))
KNOWN = {"$schema", "$defs", "$ref", "title", "description", "type", "required", "properties", "additionalProperties", "items", "minItems", "maxItems", "const",
         "enum", "pattern", "minimum", "maximum", "anyOf"}
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}


def fits(value, rule, at="index"):
    """None, or what does not fit."""
    assert set(rule) <= KNOWN, f"the schema has words that this file does not know: {set(rule) - KNOWN}"
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if "$ref" in rule:
        target = schema
        for step in rule["$ref"].split("/")[1:]:
            target = target[step]
        wrong = fits(value, target, at)
        if wrong:
            return wrong
    if "anyOf" in rule:
        tried = [fits(value, one, at) for one in rule["anyOf"]]
        if None not in tried:
            return tried[0]
    kind = rule.get("type")
    if kind and not (number if kind == "number" else number and isinstance(value, int) if kind == "integer" else isinstance(value, TYPES[kind])):
        return f"{at} is no {kind}"
    if "const" in rule and (value != rule["const"] or type(value) is not type(rule["const"])) or "enum" in rule and value not in rule["enum"]:
        return f"{at} is {value!r}"
    if isinstance(value, str) and "pattern" in rule and not re.search(rule["pattern"], value):
        return f"{at} is {value!r}"
    if number and not rule.get("minimum", value) <= value <= rule.get("maximum", value):
        return f"{at} is {value}"
    if isinstance(value, list):
        if not rule.get("minItems", 0) <= len(value) <= rule.get("maxItems", len(value)):
            return f"{at} has {len(value)} items"
        found = [fits(v, rule["items"], f"{at}[{i}]") for i, v in enumerate(value)] if "items" in rule else []
        return next((w for w in found if w), None)
    if isinstance(value, dict):
        missing = [name for name in rule.get("required", []) if name not in value]
        if missing:
            return f"{at} lacks {missing[0]}"
        for name, v in value.items():
            wrong = fits(v, rule.get("properties", {}).get(name, rule.get("additionalProperties", {})), f"{at}.{name}")
            if wrong:
                return wrong
    return None


def changed(index, path, value):
    other = copy.deepcopy(index)
    at = other
    for step in path[:-1]:
        at = at[step]
    if value is None:
        del at[path[-1]]
    else:
        at[path[-1]] = value
    return other


def check_schema(index, tables):
    paths = [([k], None) for k in index if k != "levels"] + [(["scene", k], None) for k in index["scene"]] + [(["chunks", 0, k], None) for k in index["chunks"][0]]
    paths += [(["cameras", 0, k], None) for k in index["cameras"][0]] + [(["chunks", 0, "planes", "means", k], None) for k in ("type", "components", "file", "bytes")]
    paths += [(["version"], 2), (["format"], "x"), (["chunks", 0, "count"], 70000), (["chunks", 0, "count"], "1"), (["chunks", 0, "count"], True),
              (["scene", "origin"], [0, 0]), (["chunks", 0, "planes", "means", "file"], "../x.bin"), (["cameras", 0, "width"], 0), (["cameras", 0, "width"], 1.5)]
    if tables:
        paths += [(["tile_tables", 0, k], None) for k in index["tile_tables"][0]] + [(["tile_tables", 0, "bands", 0, k], None) for k in index["tile_tables"][0]["bands"][0]]
        paths += [(["tile_tables", 0, "bands"], []), (["tile_tables", 0, "bands", 0, "arrays", "rank_delta"], 1), (["profile", "near"], "0.2")]
    if "levels" in index:
        paths += [(["levels", k], None) for k in index["levels"]] + [(["levels", "nodes", 0, k], None) for k in index["levels"]["nodes"][0]]
        paths += [(["levels", "nodes", 0, "levels", 0, k], None) for k in index["levels"]["nodes"][0]["levels"][0]]
        paths += [(["levels", "nodes"], []), (["levels", "nodes", 0, "levels"], []), (["levels", "nodes", 0, "chunk"], 1)]
    for path, value in paths:
        assert fits(changed(index, path, value), schema), f"without {path} the schema still fits"
    more = changed(changed(index, ["later"], {"x": 1}), ["chunks", 0, "later"], 7)
    assert fits(more, schema) is None, "the schema forbids members of later programs"


def read(folder, a):
    data = open(os.path.join(folder, a["file"]), "rb").read()
    assert len(data) == a["bytes"], a
    return array.array({"u8": "B", "u16": "H", "u32": "I", "f32": "f"}[a["type"]], data)


def check_table(folder, index, table):
    names = read(folder, table["arrays"]["chunks"]).tobytes().split(b"\0")[:-1]
    counts = {c["name"]: c["count"] for c in index["chunks"] + levels_of(index)}
    slot, row = read(folder, table["arrays"]["visible_slot"]), read(folder, table["arrays"]["visible_row"])
    assert len(slot) == len(row) == table["visible"] > 1000 and len(set(zip(slot, row))) == len(slot)
    assert all(r < counts[names[s].decode()] for s, r in zip(slot, row))
    pairs = 0
    assert [b["row0"] for b in table["bands"]] == [0] + [b["row1"] for b in table["bands"]][:-1] and table["bands"][-1]["row1"] == table["tiles_y"]
    for b in table["bands"]:
        count, size, code = (read(folder, b["arrays"][name]) for name in ("tile_count", "tile_bytes", "rank_delta"))
        assert len(count) == len(size) == (b["row1"] - b["row0"]) * table["tiles_x"] and sum(size) == len(code) and sum(count) == b["pairs"]
        code = iter(code)
        for n, bytes_ in zip(count, size):
            before, used, rank = -1, 0, 0
            for _ in range(n):
                for shift in range(0, 35, 7):
                    byte, used = next(code), used + 1
                    rank += (byte & 127) << shift
                    if byte < 128:
                        break
                assert before < rank < table["visible"]
                before = rank
            assert used == bytes_
        pairs += b["pairs"]
    assert pairs == table["pairs"] > 1000


def levels_of(index):
    return [level for node in index["levels"]["nodes"] for level in node["levels"]] if "levels" in index else []


def check_levels(index):
    """One root, which is last; each chunk is a leaf once; a node's levels follow those of its children, with no more rows."""
    nodes = index["levels"]["nodes"]
    by_name = {n["name"]: n for n in nodes}
    assert len(by_name) == len(nodes) and [n["parent"] for n in nodes].count("") == 1 and nodes[-1]["parent"] == ""
    assert [n["chunk"] for n in nodes if n["chunk"]] == [c["name"] for c in index["chunks"] if c["count"]]
    below = {n["name"]: [c for c in nodes if c["parent"] == n["name"]] for n in nodes}
    counts = {c["name"]: c["count"] for c in index["chunks"]}
    for i, n in enumerate(nodes):
        assert not n["parent"] or nodes.index(by_name[n["parent"]]) > i
        assert (n["chunk"] is None) == (len(below[n["name"]]) > 1) and n["rows"] == (counts[n["chunk"]] if n["chunk"] else sum(c["rows"] for c in below[n["name"]]))
        numbers = [level["level"] for level in n["levels"]]
        first = 1 if n["chunk"] else 1 + max(c["levels"][-1]["level"] for c in below[n["name"]])
        assert numbers == list(range(first, first + len(numbers))), (n["name"], numbers)
        sizes = [n["rows"] if n["chunk"] else sum(c["levels"][-1]["count"] for c in below[n["name"]])] + [level["count"] for level in n["levels"]]
        assert all(a >= b for a, b in zip(sizes, sizes[1:])), (n["name"], sizes)
        for level in n["levels"]:
            assert level["planes"]["means"]["bytes"] == 12 * level["count"] and {"source_row", "source_last", "source_count", "weights"} <= set(level["planes"])
            assert (index["levels"]["measured"] is not None) == bool(level["errors"])
    assert index["levels"]["rows"] == sum(level["count"] for level in levels_of(index))


def main():
    folder, tables = sys.argv[1], int(sys.argv[2])
    index = json.load(open(os.path.join(folder, "index.json")))
    wrong = fits(index, schema)
    assert wrong is None, wrong
    try:
        import jsonschema
        jsonschema.Draft202012Validator.check_schema(schema)
        jsonschema.Draft202012Validator(schema).validate(index)
    except ImportError:
        pass
    check_schema(index, tables)
    assert len(index["tile_tables"]) == tables and (index["profile"] is None) == (tables == 0), (len(index["tile_tables"]), index["profile"])
    assert index["layer"]["rows"] == sum(c["count"] for c in index["chunks"]) > 0
    for side, least in (("min", min), ("max", max)):
        for what in ("box", "reach"):
            assert index["scene"]["bounds"][f"{what}_{side}"] == [least(v) for v in zip(*(c[f"{what}_{side}"] for c in index["chunks"]))]
    for t in index["tile_tables"]:
        assert t["profile"] == index["profile"] and t["camera"] in [c["name"] for c in index["cameras"]]
        check_table(folder, index, t)
    assert ("levels" in index) == (len(sys.argv) > 3), "levels are there, or are not"
    if "levels" in index:
        check_levels(index)
    arrays = [a for c in index["chunks"] + levels_of(index) for a in c["planes"].values()]
    arrays += [a for t in index["tile_tables"] for of in [t["arrays"]] + [b["arrays"] for b in t["bands"]] for a in of.values()]
    assert {a["file"] for a in arrays} | {"index.json"} == set(os.listdir(folder)), set(os.listdir(folder)) ^ {a["file"] for a in arrays}
    assert all(os.path.getsize(os.path.join(folder, a["file"])) == a["bytes"] for a in arrays)


main()
