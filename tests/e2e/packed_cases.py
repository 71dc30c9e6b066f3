"""The python of tests/e2e/packed.t: `py FUNCTION [argument...]` of tests/cases.sh calls one of these."""
import gzip, sys


def pack(path):
    whole = open(path, "rb").read()
    half = len(whole) // 2
    open("one.ply.gz", "wb").write(gzip.compress(whole, 1))
    open("two.ply.gz", "wb").write(gzip.compress(whole[:half], 1) + gzip.compress(whole[half:], 1))
    packed = open("one.ply.gz", "rb").read()
    open("cut.ply.gz", "wb").write(packed[: len(packed) - 5])
    open("tail.ply.gz", "wb").write(packed + b"rest")
    bad = bytearray(packed)
    bad[len(bad) - 6] ^= 1  # the checksum
    open("sum.ply.gz", "wb").write(bad)
    open("none.ply.gz", "wb").write(gzip.compress(b"no splats at all"))
    open("bomb.ply.gz", "wb").write(gzip.compress(whole[:2000] + bytes(1 << 27), 1))
    open("large.ply.gz", "wb").write(
        gzip.compress(whole[:2000].replace(b"vertex 100000\n", b"vertex 10000000\n") + bytes(1 << 27), 1)
    )


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
