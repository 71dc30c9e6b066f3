"""The python of tests/e2e/wheel.t: FUNCTION [argument...] calls one of these."""
import pathlib
import sys

# Of these names alone, and libjbig is ours: libtiff calls ten functions of it, the library under the GPL has twenty.
NAMES = """libLerc libdeflate libgomp libisal libjansson libjbig libjpeg liblzma libpng16 libsplatkiln libsqlite3 libtiff libwebp
    libsharpyuv libxxhash libz libzstd""".split()


def libraries(package):
    for path in sorted((pathlib.Path(package) / "lib").iterdir()):
        if path.name.split(".so")[0] not in NAMES:
            sys.exit(f"{path.name} is not a library that the wheel may hold")
        if path.name.startswith("libjbig") and b"jbg_enc_lrlmax" in path.read_bytes():
            sys.exit(f"{path.name} is JBIG-KIT, which is under the GPL")


def drawn(manifest, picture):
    import numpy
    import splatkiln

    mine = splatkiln.open(manifest).draw("cam1")
    if mine[..., 3].mean() < 0.1 or mine.tobytes() != numpy.load(picture).tobytes():
        sys.exit("the pictures differ")


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
