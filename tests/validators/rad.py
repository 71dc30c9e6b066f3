#!/usr/bin/env python3
"""rad.py FILE.rad [--json] -- checks a RAD file of Spark against what sparkjsdev/spark reads (rust/spark-lib/src/rad.rs), knowing
nothing of our writer: heads, alignment, sizes of planes, the tree of rows, finite values. Prints what it is; exit 1 with the first
thing that is wrong."""
import json
import math
import struct
import sys
import zlib

SIZES = {"f32": 4, "f16": 2, "f32_lebytes": 4, "f16_lebytes": 2, "r8": 1, "r8_delta": 1, "s8": 1, "s8_delta": 1, "ln_0r8": 1,
         "ln_f16": 2, "oct88r8": 1, "u16": 2, "u32": 4}
VALUES = {"center": 3, "alpha": 1, "rgb": 3, "scales": 3, "orientation": 3, "sh1": 9, "sh2": 15, "sh3": 21, "child_count": 1,
          "child_start": 1}
ENCODINGS = {"center": ("f32", "f16", "f32_lebytes", "f16_lebytes"), "alpha": ("f32", "f16", "r8"),
             "rgb": ("f32", "f16", "r8", "r8_delta"), "scales": ("f32", "ln_f16", "ln_0r8"),
             "orientation": ("f32", "f16", "oct88r8"), "child_count": ("u16",), "child_start": ("u32",)}


class Wrong(Exception):
    pass


def demand(what, sentence):
    if not what:
        raise Wrong(sentence)


def up8(n):
    return (n + 7) // 8 * 8


def head_at(data, at, magic):
    demand(data[at:at + 4] == magic, f"no {magic.decode()} at byte {at}")
    length, = struct.unpack_from("<I", data, at + 4)
    demand(at + 8 + length <= len(data), f"the text at byte {at} does not end within the file")
    return json.loads(data[at + 8:at + 8 + length]), at + 8 + up8(length)


def halves(plane):
    return struct.unpack(f"<{len(plane) // 2}e", plane)


def check_values(p, name, n):
    if name == "center" and p["encoding"] == "f32_lebytes":
        raw = p["data"]
        stride = 3 * n
        for i in range(stride):
            v, = struct.unpack("<f", bytes(raw[b * stride + i] for b in range(4)))
            demand(math.isfinite(v), f"a centre is {v}")
    if p["encoding"] in ("f16", "ln_f16"):
        for v in halves(p["data"]):
            demand(math.isfinite(v), f"a value of {name} is {v}")
        if name == "alpha":
            demand(min(halves(p["data"])) >= 0 and max(halves(p["data"])) <= 2, "an opacity is outside 0 .. 2")


def read_chunk(data, at, end, want_base, want_count, degree):
    text, payload_at = head_at(data, at, b"RADC")
    demand(text.get("version") == 1, "the version of a chunk is not 1")
    demand(text["base"] == want_base and text["count"] == want_count, f"chunk at {at}: base or count is not what its place says")
    payload, = struct.unpack_from("<Q", data, payload_at)
    payload_at += 8
    demand(payload == text["payloadBytes"], "payloadBytes and the number before the payload differ")
    demand(payload_at + payload == end, f"chunk at {at}: its payload does not end where the chunk does")
    planes, offset = {}, 0
    for p in text["properties"]:
        name = p["property"]
        demand(p["offset"] == offset, f"property {name}: offset {p['offset']}, and the one before ends at {offset}")
        demand(name in VALUES and name not in planes, f"property {name} is unknown or there twice")
        demand(p["encoding"] in ENCODINGS.get(name, ("s8", "s8_delta", "r8", "r8_delta", "f16", "f32")), f"{name}: {p['encoding']}")
        raw = data[payload_at + offset:payload_at + offset + p["bytes"]]
        if p.get("compression") == "gz":
            d = zlib.decompressobj(-15)
            raw = d.decompress(raw)
            demand(d.eof and not d.unused_data, f"property {name} is no whole deflate stream")
        else:
            demand("compression" not in p, f"{name}: compression {p.get('compression')}")
        demand(len(raw) == want_count * VALUES[name] * SIZES[p["encoding"]], f"property {name} has {len(raw)} bytes")
        if p["encoding"] in ("s8", "s8_delta", "r8", "r8_delta", "ln_0r8"):
            demand("max" in p and p["max"] > p.get("min", 0), f"property {name} has no range")
        planes[name] = dict(p, data=raw)
        check_values(planes[name], name, want_count)
        offset += up8(p["bytes"])
    demand(offset == payload, "properties do not fill the payload")
    for name in ("center", "alpha", "rgb", "scales", "orientation", "child_count", "child_start"):
        demand(name in planes, f"property {name} is missing")
    for d in range(1, degree + 1):
        demand(f"sh{d}" in planes, f"sh{d} is missing")
    demand(f"sh{degree + 1}" not in planes, f"sh{degree + 1} is there, and maxSh is {degree}")
    n = want_count
    return struct.unpack(f"<{n}H", planes["child_count"]["data"]), struct.unpack(f"<{n}I", planes["child_start"]["data"])


def check_tree(counts, starts):
    """Each row but the first is a child of exactly one row, which comes before it."""
    n = len(counts)
    parent = [None] * n
    depth = [0] * n
    for i in range(n):
        demand(i == 0 or parent[i] is not None, f"row {i} has no row above before it")
        if i:
            depth[i] = depth[parent[i]] + 1
        if counts[i] == 0:
            continue
        demand(starts[i] > i, f"row {i} has its children at {starts[i]}, not behind it")
        demand(starts[i] + counts[i] <= n, f"row {i} has children beyond the last row")
        for c in range(starts[i], starts[i] + counts[i]):
            demand(parent[c] is None, f"row {c} has two rows above, {parent[c]} and {i}")
            parent[c] = i
    return max(depth)


def check(path):
    data = open(path, "rb").read()
    meta, start = head_at(data, 0, b"RAD0")
    demand(start <= 1 << 20, "the head is longer than the 1 MiB that Spark fetches for it")
    demand(meta.get("version") == 1 and meta.get("type") == "gsplat", "version or type")
    demand(meta.get("lodTree") is True, "lodTree is not true")
    size, count, chunks = meta["chunkSize"], meta["count"], meta["chunks"]
    demand(size == 65536, "chunkSize is not 65536, the size of Spark's pages")
    demand(len(chunks) == -(-count // size), f"{len(chunks)} chunks for {count} rows")
    encoding = meta["splatEncoding"]
    demand(encoding["lodOpacity"] is True, "lodOpacity is not true")
    demand(encoding["rgbMin"] < encoding["rgbMax"] and encoding["lnScaleMin"] < encoding["lnScaleMax"], "an empty range")
    counts, starts, offset = [], [], 0
    for i, c in enumerate(chunks):
        demand(c["offset"] == offset and c["bytes"] % 8 == 0, f"chunk {i} is not at a multiple of 8 behind the one before")
        n = min(size, count - i * size)
        a, b = read_chunk(data, start + offset, start + offset + c["bytes"], i * size, n, meta["maxSh"])
        counts += a
        starts += b
        offset += c["bytes"]
    demand(meta["allChunkBytes"] == offset and start + offset == len(data), "allChunkBytes, or bytes behind the last chunk")
    depth = check_tree(counts, starts)
    return {"rows": count, "chunks": len(chunks), "leaves": sum(1 for c in counts if c == 0), "depth": depth,
            "most_children": max(counts), "maxSh": meta["maxSh"]}


def main():
    try:
        facts = check(sys.argv[1])
    except (Wrong, ValueError, KeyError, struct.error, zlib.error, OSError) as e:
        print(f"rad.py: '{sys.argv[1]}': {e!r}" if not isinstance(e, Wrong) else f"rad.py: '{sys.argv[1]}': {e}", file=sys.stderr)
        return 1
    print(json.dumps(facts))
    return 0


if __name__ == "__main__":
    sys.exit(main())
