#!/usr/bin/env python3
"""lod_meta.py lod-meta.json -- checks streamed SOG against what playcanvas/splat-transform writes and PlayCanvas reads (formats
sog.md: lod-meta.json version 1, meta.json version 2), knowing nothing of our writer: names, counts, the tree, ranges of rows, bounds,
errors, and that every image is lossless WebP of the right size. Prints what it is; exit 1 with the first thing that is wrong."""
import json
import math
import os
import struct
import sys


class Wrong(Exception):
    pass


def demand(what, sentence):
    if not what:
        raise Wrong(sentence)


def whole(v, least=0):
    return isinstance(v, int) and not isinstance(v, bool) and v >= least


def numbers(v, n):
    return isinstance(v, list) and len(v) == n and all(isinstance(x, (int, float)) and math.isfinite(x) for x in v)


def webp_size(path):
    """Sides of a lossless WebP, from its header: RIFF size WEBP VP8L length, then 0x2f and 14 bits each."""
    with open(path, "rb") as f:
        head = f.read(25)
    demand(len(head) == 25 and head[:4] == b"RIFF" and head[8:12] == b"WEBP", f"'{path}' is no WebP")
    demand(head[12:16] == b"VP8L" and head[20] == 0x2f, f"'{path}' is not lossless alone")
    demand(struct.unpack_from("<I", head, 4)[0] + 8 == os.path.getsize(path), f"'{path}' has another size than its head says")
    bits, = struct.unpack_from("<I", head, 21)
    return (bits & 0x3fff) + 1, (bits >> 14 & 0x3fff) + 1


def check_set(path):
    """A SOG folder; returns its number of rows."""
    folder = os.path.dirname(path)
    meta = json.load(open(path))
    demand(meta.get("version") == 2 and whole(meta.get("count"), 1), f"'{path}': version or count")
    demand(numbers(meta["means"]["mins"], 3) and numbers(meta["means"]["maxs"], 3), f"'{path}': bounds of means")
    for key in ("scales", "sh0"):
        demand(numbers(meta[key]["codebook"], 256), f"'{path}': codebook of {key}")
    size = None
    for key, n in (("means", 2), ("scales", 1), ("quats", 1), ("sh0", 1)):
        demand(len(meta[key]["files"]) == n, f"'{path}': files of {key}")
        for name in meta[key]["files"]:
            here = webp_size(os.path.join(folder, name))
            size = size or here
            demand(here == size, f"'{path}': {name} is {here}, others are {size}")
    demand(size[0] * size[1] >= meta["count"], f"'{path}': {size} pixels for {meta['count']} rows")
    if "shN" in meta:
        sh = meta["shN"]
        demand(sh["bands"] in (1, 2, 3) and numbers(sh["codebook"], 256) and whole(sh["count"], 1), f"'{path}': shN")
        width, height = webp_size(os.path.join(folder, sh["files"][0]))
        demand(width == 64 * (3, 8, 15)[sh["bands"] - 1] and 64 * height >= sh["count"], f"'{path}': the palette has {width} x {height}")
        demand(webp_size(os.path.join(folder, sh["files"][1])) == size, f"'{path}': labels of another size")
    return meta["count"]


def check_bound(node, outer):
    bound = node.get("bound")
    demand(isinstance(bound, dict) and numbers(bound.get("min"), 3) and numbers(bound.get("max"), 3), "a node without a bound")
    demand(all(a <= b for a, b in zip(bound["min"], bound["max"])), f"a bound from {bound['min']} to {bound['max']}")
    inside = outer is None or all(a >= b for a, b in zip(bound["min"], outer["min"])) and all(
        a <= b for a, b in zip(bound["max"], outer["max"]))
    demand(inside, "a bound that reaches out of the one above")
    return bound


def check_leaf(node, meta, parts):
    demand(isinstance(node["lods"], dict) and node["lods"], "a leaf without levels")
    for key, p in node["lods"].items():
        demand(key.isdigit() and str(int(key)) == key and int(key) < meta["lodLevels"], f"a level called '{key}'")
        demand(whole(p.get("file")) and p["file"] < len(meta["filenames"]), f"a leaf names file {p.get('file')}")
        demand(whole(p.get("offset")) and whole(p.get("count"), 1), f"a leaf with offset {p.get('offset')}, count {p.get('count')}")
        parts.append((int(key), p["file"], p["offset"], p["count"]))
    if meta.get("lodErrors"):
        errors = node.get("errors")
        demand(numbers(errors, meta["lodLevels"]) and errors[0] == 0, "a leaf's errors are no list of numbers that begins with 0")
        demand(all(a <= b for a, b in zip(errors, errors[1:])), f"errors that fall: {errors}")


def walk(node, meta, parts, outer, depth):
    """Leaves below; children are two, as splat-transform has them."""
    demand(depth < 64, "the tree is deeper than 64")
    bound = check_bound(node, outer)
    if "lods" in node:
        demand("children" not in node, "a node with children and levels")
        check_leaf(node, meta, parts)
        return 1
    demand(isinstance(node.get("children"), list) and len(node["children"]) == 2, "a node without two children")
    return sum(walk(c, meta, parts, bound, depth + 1) for c in node["children"])


def check_parts(meta, parts, rows):
    """Ranges of a level share no row and fill its files; every row of a file is some leaf's."""
    counts = [0] * meta["lodLevels"]
    covered = [set() for _ in rows]
    by_level = {}
    for level, file, offset, n in parts:
        demand(offset + n <= rows[file], f"a leaf has rows {offset} to {offset + n} of a file of {rows[file]}")
        counts[level] += n
        by_level.setdefault((level, file), []).append((offset, n))
        covered[file].update(range(offset, offset + n))
    for (level, file), ranges in by_level.items():
        ranges.sort()
        for a, b in zip(ranges, ranges[1:]):
            demand(a[0] + a[1] <= b[0], f"two leaves share row {b[0]} of file {file} at level {level}")
    demand(counts == meta["counts"], f"counts {meta['counts']}, and the leaves have {counts}")
    demand(sum(counts) == meta["count"], f"count {meta['count']}, and the leaves have {sum(counts)}")
    for file, n in enumerate(rows):
        demand(len(covered[file]) == n, f"file {file} has {n} rows, and leaves have {len(covered[file])} of them")


def check(path):
    meta = json.load(open(path))
    folder = os.path.dirname(path)
    demand(meta.get("version") == 1, "version is not 1")
    demand(whole(meta.get("lodLevels"), 1), "lodLevels")
    names = meta.get("filenames")
    demand(isinstance(names, list) and len(set(names)) == len(names), "filenames")
    for name in names:
        demand(not name.startswith("/") and ".." not in name.split("/") and name.endswith("meta.json"), f"the name '{name}'")
    rows = [check_set(os.path.join(folder, name)) for name in names]
    parts = []
    leaves = walk(meta["tree"], meta, parts, None, 0)
    check_parts(meta, parts, rows)
    return {"levels": meta["lodLevels"], "counts": meta["counts"], "leaves": leaves, "files": len(names), "errors": bool(meta.get("lodErrors"))}


def main():
    try:
        facts = check(sys.argv[1])
    except Wrong as e:
        print(f"lod_meta.py: '{sys.argv[1]}': {e}", file=sys.stderr)
        return 1
    except (ValueError, KeyError, TypeError, struct.error, OSError) as e:
        print(f"lod_meta.py: '{sys.argv[1]}': {e!r}", file=sys.stderr)
        return 1
    print(json.dumps(facts))
    return 0


if __name__ == "__main__":
    sys.exit(main())
