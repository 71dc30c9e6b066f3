"""program -- the program kiln: the one of the wheel, of the source tree that this package lies in, or of the system."""
from __future__ import annotations

import os
import pathlib
import shutil
import subprocess
import sys
from typing import Sequence

from splatkiln.errors import BakeError, LibraryError


def path(name: str = "kiln") -> str:
    """Where a program lies: kiln, or kiln-STAGE. LibraryError: nowhere. $SPLATKILN_BIN names the folder instead."""
    package = pathlib.Path(__file__).resolve().parent
    near = [package / "bin"] + ([package.parents[1] / "build" / "bin"] if len(package.parents) > 1 else [])
    for folder in [pathlib.Path(os.environ["SPLATKILN_BIN"])] if os.environ.get("SPLATKILN_BIN") else near:
        if os.access(folder / name, os.X_OK):
            return str(folder / name)
    found = shutil.which(name)
    if not found:
        raise LibraryError(f"there is no program {name}: install the wheel, or set SPLATKILN_BIN to the folder that has it")
    return found


def run(words: Sequence[str]) -> str:
    """Runs `kiln WORDS...` and returns what it prints. BakeError, with its last sentences, where it ends with a failure."""
    done = subprocess.run([path(), *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
    if done.returncode != 0:
        said = done.stderr.strip().splitlines()[-3:]
        raise BakeError("; ".join(said) or f"kiln {words[0]} ended with {done.returncode}")
    return done.stdout


def main() -> None:
    """The command `kiln` of the package: becomes the program."""
    program = path()
    os.execv(program, [program, *sys.argv[1:]])
