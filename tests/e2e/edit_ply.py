"""edit_ply.py FILE COLUMN ROW|all EXPRESSION: sets a column of rows to an expression of its present value v."""
import struct, sys

path, column, rows, expression = sys.argv[1:]
data = bytearray(open(path, "rb").read())
end = data.index(b"end_header\n") + 11
head = [l.split() for l in data[:end].decode().split("\n")]
names = [l[2] for l in head if l[:1] == ["property"]]
count = next(int(l[2]) for l in head if l[:2] == ["element", "vertex"])
for row in range(count) if rows == "all" else [int(rows)]:
    at = end + (row * len(names) + names.index(column)) * 4
    (v,) = struct.unpack_from("<f", data, at)
    struct.pack_into("<f", data, at, eval(expression))
open(path, "wb").write(data)
