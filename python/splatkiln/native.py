"""native -- libsplatkiln through ctypes: where it is found, its structures, and a call of one of its operations.

The library is looked for at $SPLATKILN_LIBRARY, in this package (where the wheel has it), in build/ of the source tree that this
package lies in, and where the system has libraries. It is loaded once, when something first needs it. No CUDA is touched before a
GPU is named.
"""
from __future__ import annotations

import ctypes
import os
import pathlib
import sqlite3  # noqa: F401 -- before the library: of two libsqlite3 in a process the first wins, and it must be Python's own
import struct
import threading
from typing import Any, Optional

from splatkiln.errors import LibraryError

SONAME = "libsplatkiln.so.1"


class Error(ctypes.Structure):  # kiln_error
    _fields_ = [("status", ctypes.c_int), ("msg", ctypes.c_char * 1024)]


class Blob(ctypes.Structure):  # kiln_blob
    _fields_ = [("hash", ctypes.c_ubyte * 16), ("raw_bytes", ctypes.c_uint64), ("elem", ctypes.c_uint32),
                ("packed_bytes", ctypes.c_size_t), ("packed", ctypes.c_char_p)]


class Hash(ctypes.Structure):  # kiln_hash
    _fields_ = [("bytes", ctypes.c_ubyte * 16)]


class Exec(ctypes.Structure):  # kiln_exec
    _fields_ = [("device", ctypes.c_int), ("stream", ctypes.c_void_p), ("side", ctypes.c_void_p), ("threads", ctypes.c_uint),
                ("sync", ctypes.c_bool), ("violation", ctypes.c_void_p)]


class DeviceInfo(ctypes.Structure):  # kiln_device_info
    _fields_ = [("name", ctypes.c_char * 256), ("uuid", ctypes.c_char * 48), ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32),
                ("built_version", ctypes.c_uint32), ("driver_version", ctypes.c_uint32), ("total_bytes", ctypes.c_uint64), ("free_bytes", ctypes.c_uint64)]


class KnnArgs(ctypes.Structure):  # kiln_knn_args
    _fields_ = [("n", ctypes.c_uint64), ("k", ctypes.c_uint32), ("means", ctypes.c_void_p), ("spacing2", ctypes.c_void_p), ("best", ctypes.c_void_p)]


class SsimArgs(ctypes.Structure):  # kiln_ssim_args
    _fields_ = [("planes", ctypes.c_uint64), ("width", ctypes.c_uint32), ("height", ctypes.c_uint32), ("valid", ctypes.c_bool),
                ("a", ctypes.c_void_p), ("b", ctypes.c_void_p), ("partials", ctypes.c_void_p), ("mean", ctypes.c_void_p)]


class SsimBackwardArgs(ctypes.Structure):  # kiln_ssim_backward_args
    _fields_ = [("planes", ctypes.c_uint64), ("width", ctypes.c_uint32), ("height", ctypes.c_uint32), ("valid", ctypes.c_bool),
                ("a", ctypes.c_void_p), ("b", ctypes.c_void_p), ("partials", ctypes.c_void_p), ("upstream", ctypes.c_void_p), ("gradient", ctypes.c_void_p)]


class Ssim3dArgs(ctypes.Structure):  # kiln_ssim3d_args
    _fields_ = [("planes", ctypes.c_uint64), ("width", ctypes.c_uint32), ("height", ctypes.c_uint32), ("depth", ctypes.c_uint32), ("valid", ctypes.c_bool),
                ("a", ctypes.c_void_p), ("b", ctypes.c_void_p), ("partials", ctypes.c_void_p), ("mean", ctypes.c_void_p)]


class Ssim3dBackwardArgs(ctypes.Structure):  # kiln_ssim3d_backward_args
    _fields_ = [("planes", ctypes.c_uint64), ("width", ctypes.c_uint32), ("height", ctypes.c_uint32), ("depth", ctypes.c_uint32), ("valid", ctypes.c_bool),
                ("a", ctypes.c_void_p), ("b", ctypes.c_void_p), ("partials", ctypes.c_void_p), ("upstream", ctypes.c_void_p), ("gradient", ctypes.c_void_p)]


class Metrics(ctypes.Structure):  # kiln_metrics
    _fields_ = [("psnr", ctypes.c_double), ("mse", ctypes.c_double), ("ssim_same", ctypes.c_double), ("ssim_valid", ctypes.c_double),
                ("mean_a", ctypes.c_double * 3), ("mean_b", ctypes.c_double * 3)]


class MetricsArgs(ctypes.Structure):  # kiln_metrics_args
    _fields_ = [("width", ctypes.c_uint32), ("height", ctypes.c_uint32), ("a", ctypes.c_void_p), ("b", ctypes.c_void_p), ("a_step", ctypes.c_uint32),
                ("b_step", ctypes.c_uint32), ("a_row", ctypes.c_uint32), ("b_row", ctypes.c_uint32), ("mask", ctypes.c_void_p), ("out", ctypes.c_void_p)]


ARGS = {"knn": KnnArgs, "ssim": SsimArgs, "ssim_backward": SsimBackwardArgs, "ssim3d": Ssim3dArgs, "ssim3d_backward": Ssim3dBackwardArgs,
        "metrics": MetricsArgs}
CODES: dict[Any, str] = {ctypes.c_uint64: "Q", ctypes.c_uint32: "I", ctypes.c_bool: "?", ctypes.c_void_p: "P"}  # of module struct, C's layout

_lock = threading.Lock()
_library: Optional[ctypes.CDLL] = None
_operations: dict[tuple[str, int], "Operation"] = {}
_opened: set[int] = set()


def _place() -> str:
    wanted = os.environ.get("SPLATKILN_LIBRARY")
    package = pathlib.Path(__file__).resolve().parent
    near = [package / "lib" / SONAME] + ([package.parents[1] / "build" / SONAME] if len(package.parents) > 1 else [])
    return wanted if wanted else next((str(p) for p in near if p.exists()), SONAME)


def _declare(lib: ctypes.CDLL) -> None:
    p, error = ctypes.c_void_p, ctypes.POINTER(Error)
    lib.kiln_blob_unpack.argtypes = [ctypes.POINTER(Blob), p, error]
    lib.kiln_hash_of.argtypes, lib.kiln_hash_of.restype = [ctypes.c_char_p, ctypes.c_size_t], Hash
    lib.kiln_ops_cpu.restype = lib.kiln_ops_cuda.restype = p
    if not hasattr(lib, "kiln_op_find"):
        raise LibraryError("libsplatkiln is of an earlier version than this package")
    lib.kiln_op_find.argtypes = [ctypes.c_char_p]
    lib.kiln_op_args_bytes.argtypes, lib.kiln_op_args_bytes.restype = [ctypes.c_int], ctypes.c_size_t
    lib.kiln_device_open.argtypes = [ctypes.c_int, ctypes.POINTER(DeviceInfo), error]
    lib.kiln_device_built_archs.restype = ctypes.c_char_p


def library() -> Optional[ctypes.CDLL]:
    """libsplatkiln, loaded once; None where there is none. LibraryError: $SPLATKILN_LIBRARY names one that cannot be loaded."""
    global _library
    with _lock:
        if _library is None:
            try:
                lib = ctypes.CDLL(_place())
            except OSError as e:
                if os.environ.get("SPLATKILN_LIBRARY"):
                    raise LibraryError(f"cannot load SPLATKILN_LIBRARY: {e}") from e
                return None
            _declare(lib)
            _library = lib
        return _library


def needed(what: str) -> ctypes.CDLL:
    """libsplatkiln, or LibraryError: `what` needs it."""
    lib = library()
    if not lib:
        raise LibraryError(f"{what} needs {SONAME}: install the wheel, run `make lib`, or set SPLATKILN_LIBRARY")
    return lib


def fail_as(err: Error, status: int) -> None:
    """Raises what a status of the library is in Python: MemoryError, ValueError or LibraryError."""
    code, sentence = needed("an exit code").kiln_exit_code(status), err.msg.decode(errors="replace")
    if code in (2, 3):
        raise ValueError(sentence)
    if code == 5:
        raise MemoryError(sentence)
    raise LibraryError(sentence, code)


def open_device(device: int) -> None:
    """Sees once whether a GPU can be used, with a sentence where it cannot: no driver, no code for it in this build."""
    lib = needed("a GPU")
    with _lock:
        if device in _opened:
            return
        info, err = DeviceInfo(), Error()
        status = lib.kiln_device_open(device, info, err)
        if status == 0:
            _opened.add(device)
    if status != 0:
        fail_as(err, status)


def threads() -> int:
    """CPUs that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Operation:
    """One operation of the library, on the CPU (device -1) or on one GPU: what every call of it takes."""

    def __init__(self, op: str, device: int) -> None:
        lib = needed(f"the operation '{op}'")
        self.number, self.args, self.device = lib.kiln_op_find(op.encode()), ARGS[op], device
        if self.number < 0 or lib.kiln_op_args_bytes(self.number) != ctypes.sizeof(self.args):
            raise LibraryError(f"libsplatkiln is of another version than this package: its operation '{op}' is another one")
        if device >= 0:
            open_device(device)
        self.ops = lib.kiln_ops_cpu() if device < 0 else lib.kiln_ops_cuda()
        # With addresses as integers, which ctypes converts in a third of the time that references to structures take.
        p = ctypes.c_void_p
        self.function = ctypes.CFUNCTYPE(ctypes.c_int, p, ctypes.c_int, p, p, p, p, p)(("kiln_op_call", lib))


def operation(op: str, device: int) -> Operation:
    """The operation of that name, a key of ARGS, on that device; looked up once."""
    found = _operations.get((op, device))
    if found is None:
        found = _operations[op, device] = Operation(op, device)
    return found


class Call:
    """An operation of sizes that stay, ready but for the addresses of its arrays. Sizes are what its structure in ARGS begins with.

    cpus: threads, on the CPU. rest: all that comes behind the sizes, as of a run; work_bytes, the work space, may depend on what is NULL
    there. Any number of threads may use one Call. What a run needs lies ready in a list: making structures takes longer than the call."""

    def __init__(self, o: Operation, cpus: int, sizes: tuple[Any, ...], rest: tuple[Any, ...]) -> None:
        fields = o.args._fields_[len(sizes):]
        self._operation, self._cpus, self._sizes = o, cpus, sizes
        self._function, self._ops, self._number = o.function, o.ops, o.number
        self._put = struct.Struct("".join(CODES[field[1]] for field in fields)).pack_into
        self._begin = getattr(o.args, fields[0][0]).offset
        self._idle: list[Any] = []
        self.work_bytes: int = 0
        self.run(1, None, *rest)
        self.work_bytes = self._idle[0][2].value

    def _made(self) -> Any:
        """The structures of a run, and where they are."""
        o = self._operation
        parts = Exec(o.device, None, None, self._cpus), o.args(*self._sizes), ctypes.c_size_t(self.work_bytes), Error()
        return *parts, *[ctypes.addressof(part) for part in parts]

    def run(self, stream: int, work: Optional[int], *rest: Any) -> None:
        """Runs it; on a GPU it puts launches on the stream and does not wait. stream: the GPU's, as an integer, never 0 (1 is the legacy
        default stream). work: work_bytes of the device at a multiple of 256, never 0; None only asks for work_bytes. rest: addresses in
        memory of the device, 0 for NULL."""
        try:
            made = self._idle.pop()  # each run its own: another thread, or a signal's handler, takes others
        except IndexError:
            made = self._made()
        where, args, _, err, where_at, args_at, size_at, err_at = made
        where.stream = stream
        self._put(args, self._begin, *rest)
        status = self._function(self._ops, self._number, where_at, args_at, work, size_at, err_at)
        if status != 0:
            fail_as(err, status)
        self._idle.append(made)
