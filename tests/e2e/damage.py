"""damage.py FILE HOW [OTHER] -- makes of a file what a disk, a power cut, another program or another run may make of it."""
import os
import shutil
import sys

path, how = sys.argv[1:3]
size = os.path.getsize(path)
flips = {"first": 0, "middle": size // 2, "seal": size - 40, "last": size - 1}


def overwrite(at, data):
    with open(path, "r+b") as f:
        f.seek(at)
        f.write(data)


if how in flips:
    with open(path, "rb") as f:
        f.seek(flips[how])
        overwrite(flips[how], bytes([f.read(1)[0] ^ 16]))
elif how == "zeros":  # what a file system may leave of pages that it had not written
    overwrite(size // 2, bytes(size - size // 2))
elif how == "all-zeros":
    overwrite(0, bytes(size))
elif how == "cut":
    os.truncate(path, size // 2)
elif how == "empty":
    os.truncate(path, 0)
elif how == "longer":
    overwrite(size, b"kiln")
elif how == "unsealed":  # as versions without seals left it
    with open(path, "rb") as f:
        f.seek(size - 64 + 16)
        os.truncate(path, int.from_bytes(f.read(8), sys.byteorder))
elif how == "other":
    shutil.copyfile(sys.argv[3], path)
else:
    sys.exit(f"damage.py knows no '{how}'")
