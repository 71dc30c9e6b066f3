"""build_wheel -- makes the wheel of splatkiln: its Python files, libsplatkiln, kiln, and the libraries that both need.

pip calls build_wheel (PEP 517; pyproject.toml), `make wheel` calls it as a program: build_wheel.py STAGE OUT. STAGE, or
$SPLATKILN_STAGE, or build/wheel/stage, is a folder with lib/libsplatkiln.so.1 and bin/kiln, linked to find libraries in lib/. No
module but Python's own is needed, because machines that build may have neither setuptools nor wheel. The same files give the same
bytes.

The tag is py3-none: ctypes loads the library, so one wheel fits every Python. It is linux_x86_64 and not manylinux: what it runs on
is a glibc as new as that of the machine that made it.
"""
import base64
import glob
import hashlib
import os
import pathlib
import platform
import re
import stat
import subprocess
import sys
import time
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
# What every Linux has beside glibc, and what another copy of would break in a process that has its own (torch has libstdc++'s symbols).
OF_THE_SYSTEM = re.compile(r"(linux-vdso|ld-linux.*|libc|libm|libdl|libpthread|librt|libgcc_s|libstdc\+\+)\.so")

# What may travel in a wheel under the MIT licence, by the name in front of `.so`: libraries under licences that ask for no more than
# their text. libgomp is under the GPL with an exception for programs that gcc compiles. libjbig is python/no_jbig.c.
MAY_TRAVEL = re.compile(r"lib(gomp|isal|jansson|jbig|jpeg|lzma|png16|sqlite3|tiff|webp|sharpyuv|xxhash|z|zstd|[Ll]erc|deflate)\.so")


def _project(key):
    """A line of pyproject.toml; Python 3.10 has no tomllib."""
    return re.search(rf'^{key} = (.*)$', (HERE / "pyproject.toml").read_text(), re.M).group(1).strip('"')


def _version():
    return re.search(r'^__version__ = "(.*)"$', (HERE / "splatkiln/__init__.py").read_text(), re.M).group(1)


def _libraries(binaries):
    """The libraries that these are linked to, in however many steps, but for the system's: paths by name. Refuses one that may not
    travel, and libjbig that is not ours."""
    found = {}
    for binary in binaries:
        listed = subprocess.run(["ldd", str(binary)], check=True, capture_output=True, text=True).stdout
        for name, path in re.findall(r"^\s*(\S+) => (\S+)", listed, re.M):
            if path == "not":
                raise SystemExit(f"build_wheel: {binary} needs {name}, which is not there")
            if OF_THE_SYSTEM.match(name):
                continue
            found[name] = pathlib.Path(path)
            ours = found[name].parent.samefile(binaries[0].parent)
            if not MAY_TRAVEL.match(name) or (name.startswith("libjbig") and not ours):
                raise SystemExit(f"build_wheel: {binary} needs {name}, whose licence is not known to allow a wheel under the MIT licence")
    return found


def _licences(libraries):
    """Debian's copyright files of the packages that the libraries are of, by package; none elsewhere."""
    texts = {}
    for path in libraries.values():
        if path.name == "libjbig.so.0":  # ours: _libraries
            continue
        try:
            owner = subprocess.run(["dpkg", "-S", f"*/{path.resolve().name}"], check=True, capture_output=True, text=True).stdout
        except (OSError, subprocess.CalledProcessError):
            continue
        package = owner.split(":")[0]
        for text in glob.glob(f"/usr/share/doc/{package}/copyright"):
            texts[package] = pathlib.Path(text).read_bytes()
    return texts


def _metadata():
    return (f"Metadata-Version: 2.1\nName: splatkiln\nVersion: {_version()}\nSummary: {_project('description')}\nLicense: MIT\n"
            f"Requires-Python: {_project('requires-python')}\nRequires-Dist: numpy\nClassifier: Typing :: Typed\n").encode()


def _tag():
    return f"py3-none-linux_{platform.machine()}"


def _files(stage):
    """What is in the wheel: bytes and whether it is a program, by path."""
    files = {f"splatkiln/{p.name}": (p.read_bytes(), False) for p in sorted((HERE / "splatkiln").iterdir()) if p.suffix == ".py" or p.name == "py.typed"}
    binaries = [stage / "lib/libsplatkiln.so.1", stage / "bin/kiln"]
    for binary in binaries:
        if not binary.is_file():
            raise SystemExit(f"build_wheel: there is no {binary}; run `make wheel` in the source tree")
    for p in sorted(stage.glob("*/*")):
        files[f"splatkiln/{p.relative_to(stage)}"] = (p.read_bytes(), p.parent.name == "bin")
    libraries = _libraries(binaries)
    for name, path in sorted(libraries.items()):
        if f"splatkiln/lib/{name}" not in files:
            files[f"splatkiln/lib/{name}"] = (path.read_bytes(), False)
    info = f"splatkiln-{_version()}.dist-info"
    files[f"{info}/METADATA"] = (_metadata(), False)
    files[f"{info}/WHEEL"] = (f"Wheel-Version: 1.0\nGenerator: splatkiln\nRoot-Is-Purelib: false\nTag: {_tag()}\n".encode(), False)
    files[f"{info}/entry_points.txt"] = (b"[console_scripts]\nkiln = splatkiln.program:main\n", False)
    files[f"{info}/licenses/LICENSE"] = ((HERE.parent / "LICENSE").read_bytes(), False)
    for package, text in sorted(_licences(libraries).items()):
        files[f"{info}/licenses/{package}"] = (text, False)
    return files


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Writes the wheel into a folder and returns its name."""
    stage = pathlib.Path(os.environ.get("SPLATKILN_STAGE") or HERE.parent / "build/wheel/stage").resolve()
    name, files = f"splatkiln-{_version()}-{_tag()}.whl", _files(stage)
    record = "".join(f"{path},sha256={base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()},{len(data)}\n"
                     for path, (data, _) in files.items())
    at = f"splatkiln-{_version()}.dist-info/RECORD"
    files[at] = (f"{record}{at},,\n".encode(), False)
    date = time.gmtime(max(int(os.environ.get("SOURCE_DATE_EPOCH", 0)), 315532800))[:6]  # a zip begins in 1980
    with zipfile.ZipFile(pathlib.Path(wheel_directory) / name, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as wheel:
        for path, (data, runs) in files.items():
            entry = zipfile.ZipInfo(path, date)
            entry.external_attr = (stat.S_IFREG | (0o755 if runs else 0o644)) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, data)
    return name


def build_sdist(sdist_directory, config_settings=None):
    raise SystemExit("build_wheel: there is no source distribution; the whole source tree is needed")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: build_wheel.py STAGE OUT")
    os.environ["SPLATKILN_STAGE"] = sys.argv[1]
    os.makedirs(sys.argv[2], exist_ok=True)
    print(os.path.join(sys.argv[2], build_wheel(sys.argv[2])))
