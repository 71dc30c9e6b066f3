"""operations -- distCUDA2, fused_ssim, fused_ssim3d and psnr_ssim of arrays and tensors, on the device that they are on.

A numpy array, or a torch tensor on the CPU, is computed by the CPU's sibling on all CPUs of the process; a torch tensor on a GPU by
CUDA's, on that GPU, whichever is current, on the current stream of it, without waiting. Both siblings give the same bits. The current
device stays what it was. Any number of threads may call at once: all memory is the call's own, and torch's caching allocator has it.
What the library needs of a size is made once for each device and kept, because a call from an idle GPU waits for Python.
Layouts are changed on the device; nothing passes through the host.
"""
from __future__ import annotations

import ctypes
import functools
import math
import sys
from typing import Any, TypeVar

import numpy as np

from splatkiln.arrays import Array
from splatkiln.native import Call, Metrics, operation, threads

LEGACY_STREAM = 1  # cudaStreamLegacy: what torch calls stream 0, and kernels/exec.h takes by this name alone
KEPT_MOST = 256  # sizes on one device whose calls lie ready
Kept = TypeVar("Kept")


def _numpy_floats(a: Array, shape: Any) -> Array:
    return np.empty(shape, np.float32)


def _numpy_address(a: Array) -> int:
    return int(a.ctypes.data)


class _Memory:
    """Arrays on one device: those that are given, made contiguous, and those that a call needs. Kept, one for each device.

    floats(a, shape): float32 beside a, not set; like(a): of its shape. address(a): where it lies. stream(): the current one of the
    device in this thread, 0 for the default stream and on the CPU."""

    def __init__(self, torch: Any, device: Any) -> None:
        """torch: the module, and the device that it names; or None for numpy's arrays."""
        self.torch, self.device = torch, -1
        self.floats: Any = _numpy_floats
        self.like: Any = np.empty_like
        self.address: Any = _numpy_address
        self.stream: Any = int
        self.calls: dict[Any, Call] = {}
        self.ssims: dict[Any, _Ssim] = {}
        if torch is None:
            return
        self.floats, self.like, self.address = torch.Tensor.new_empty, torch.empty_like, torch.Tensor.data_ptr
        if device.type not in ("cpu", "cuda"):
            raise ValueError(f"tensors on the CPU or on a CUDA device are computed, not on '{device}'")
        if device.type == "cuda":
            self.device = device.index
            # Without this name a stream is made an object of, for its number alone.
            number_of = getattr(torch._C, "_cuda_getCurrentRawStream", lambda index: torch.cuda.current_stream(index).cuda_stream)
            self.stream = functools.partial(number_of, device.index)

    def cpus(self) -> int:
        return threads() if self.device < 0 else 1

    def contiguous(self, a: Any) -> Any:
        """The same values in one piece, copied on the device if they are not."""
        return np.ascontiguousarray(a) if self.torch is None else a.detach().contiguous()

    def run(self, op: str, beside: Any, sizes: tuple[Any, ...], *rest: Any, variant: Any = None) -> None:
        """Runs an operation with work space of this device, where `beside` lies. sizes, rest: as of Call. variant: what else the size of
        the work space depends on."""
        cpus = self.cpus()
        key = op, sizes, variant, cpus
        call = self.calls.get(key) or _kept(self.calls, key, Call(operation(op, self.device), cpus, sizes, rest))
        work = self.floats(beside, _floats_of(call.work_bytes))
        call.run(self.stream() or LEGACY_STREAM, _aligned(self.address(work)), *rest)


def _kept(all_of_them: dict[Any, Kept], key: Any, value: Kept) -> Kept:
    if len(all_of_them) >= KEPT_MOST:
        all_of_them.clear()
    all_of_them[key] = value
    return value


def _floats_of(size: int) -> int:
    """So many bytes that begin at a multiple of 256, and at least one."""
    return (size + 259) // 4


def _aligned(address: int) -> int:
    return address + 255 & -256


_memories: dict[Any, _Memory] = {}


def _check_kind(v: Any, kind: Any, dtype: Any) -> None:
    if not isinstance(v, kind):
        raise TypeError(f"numpy arrays, or torch tensors, and not both, are computed; this is a {type(v).__name__}")
    if v.dtype != dtype:
        raise TypeError(f"float32 is computed, not {v.dtype}")


def _check_tensor(torch: Any, v: Any, device: Any) -> None:
    _check_kind(v, torch.Tensor, torch.float32)
    if v.device != device:
        raise ValueError(f"tensors of one device are computed; these are on {device} and {v.device}")
    if v.layout != torch.strided:
        raise TypeError("dense tensors are computed")


def _memory_of(*values: Any) -> _Memory:
    """For arrays and tensors that are all on one device and float32. TypeError, ValueError. Nothing imports torch but its user."""
    torch, device = sys.modules.get("torch"), None
    if torch is not None and isinstance(values[0], torch.Tensor):
        tensor, float32, strided, device = torch.Tensor, torch.float32, torch.strided, values[0].device
        for v in values:
            if not isinstance(v, tensor) or v.dtype is not float32 or v.layout is not strided or v.device != device:
                _check_tensor(torch, v, device)
    else:
        torch = None
        for v in values:
            _check_kind(v, np.ndarray, np.float32)
    found = _memories.get(device)
    if found is None:
        found = _memories[device] = _Memory(torch, device)
    return found


# ---- distCUDA2 --------------------------------------------------------------------------------------------------------------------

def distCUDA2(points: Any) -> Any:
    """The mean squared distance of each point to its three nearest neighbours, as simple-knn's distCUDA2 gives it.

    points: float32 [P, 3], any strides, scene units, finite. Returns float32 [P], scene units squared, on the points' device. Exact
    anywhere in space (simple-knn is slow away from the origin). A duplicate counts at distance 0; with fewer than four points a missing
    neighbour counts as FLT_MAX, so the mean is huge or infinite. No gradient.

    TypeError: no array or tensor of float32. ValueError: another shape, or more than 2^32 - 2 points. MemoryError, LibraryError."""
    m = _memory_of(points)
    if points.ndim != 2 or points.shape[1] != 3:
        raise ValueError(f"points are [P, 3], not {list(points.shape)}")
    n = int(points.shape[0])
    out = m.floats(points, n)
    if n == 0:
        return out
    planar = m.contiguous(points.T if m.torch is None else points.detach().t())
    m.run("knn", out, (n, 3), m.address(planar), m.address(out), 0)
    return out


# ---- fused_ssim -------------------------------------------------------------------------------------------------------------------

class _Ssim:
    """Batches of one shape, of pictures or volumes, on one device: their mean SSIM and its gradient. Kept, with all that does not
    change from call to call."""

    def __init__(self, m: _Memory, shape: Any, valid: bool, cpus: int) -> None:
        op = "ssim" if len(shape) == 4 else "ssim3d"
        sizes = (shape[0] * shape[1], *shape[:1:-1], valid)  # planes, width, height, of volumes depth, as the structures begin
        self._m, self._partials = m, 3 * math.prod(shape)  # floats
        self._forward = Call(operation(op, m.device), cpus, sizes, (0, 0, 0, 0))
        self._backward = Call(operation(f"{op}_backward", m.device), cpus, sizes, (0, 0, 0, 0, 0))
        self._forward_floats = _floats_of(self._forward.work_bytes)

    def mean(self, a: Any, b: Any, keep: bool) -> tuple[Any, Any]:
        """The mean, of no axes; and if they are kept the partials, which `gradient` takes, with the work space behind them: one
        allocation takes half the time of two."""
        m, partials = self._m, self._partials if keep else 0
        kept, mean, address = m.floats(a, partials + self._forward_floats), m.floats(a, ()), m.address
        at = address(kept)
        self._forward.run(m.stream() or LEGACY_STREAM, at + 4 * partials + 255 & -256, address(a), address(b), at if keep else 0, address(mean))
        return mean, kept

    def gradient(self, a: Any, b: Any, kept: Any, upstream: Any) -> Any:
        """To a, of its shape."""
        m, work, work_at, size = self._m, None, 256, self._backward.work_bytes
        out, address = m.like(a), m.address
        if size:
            work = m.floats(a, _floats_of(size))
            work_at = _aligned(address(work))
        self._backward.run(m.stream() or LEGACY_STREAM, work_at, address(a), address(b), address(kept), address(upstream), address(out))
        return out


def _ssim_of(m: _Memory, img1: Any, img2: Any, padding: str, axes: int) -> _Ssim:
    if padding not in ("same", "valid"):
        raise ValueError(f"padding is 'same' or 'valid', not {padding!r}")
    shape, cpus = img1.shape, 1 if m.device >= 0 else m.cpus()
    if len(shape) != axes or shape != img2.shape:
        raise ValueError(f"two batches of {'volumes of one shape [B, CH, D, H, W]' if axes == 5 else 'pictures of one shape [B, CH, H, W]'} "
                         f"are compared, not {list(shape)} and {list(img2.shape)}")
    key = shape, padding, cpus
    return m.ssims.get(key) or _kept(m.ssims, key, _Ssim(m, shape, padding == "valid", cpus))


_apply: Any = None


def _autograd_apply(torch: Any) -> Any:
    """The apply of a torch.autograd.Function of the mean SSIM, made once."""
    global _apply
    if _apply is None:
        grad_is_enabled = torch.is_grad_enabled

        class MeanSsim(torch.autograd.Function):  # type: ignore[misc]
            @staticmethod
            def forward(ctx: Any, img1: Any, img2: Any, ssim: _Ssim, train: bool) -> Any:
                a, b, keep = img1.contiguous(), img2.contiguous(), train and ctx.needs_input_grad[0]
                mean, kept = ssim.mean(a, b, keep)
                if keep:
                    ctx.ssim = ssim
                    ctx.save_for_backward(a, b, kept)
                else:
                    ctx.ssim, ctx.train = None, train
                return mean

            @staticmethod
            def backward(ctx: Any, upstream: Any) -> Any:
                # What refuses a second derivative takes as long as all of the rest, so it comes only where one may be asked for.
                return (refusing if grad_is_enabled() else gradients)(ctx, upstream)

        def gradients(ctx: Any, upstream: Any) -> Any:
            if ctx.ssim:
                return ctx.ssim.gradient(*ctx.saved_tensors, upstream), None, None, None
            if not ctx.train:
                raise RuntimeError("train=False keeps nothing that a gradient needs")
            return None, None, None, None

        refusing = torch.autograd.function.once_differentiable(gradients)
        _apply = MeanSsim.apply
    return _apply


def _mean_ssim(img1: Any, img2: Any, padding: str, train: bool, axes: int) -> Any:
    m = _memory_of(img1, img2)
    ssim = _ssim_of(m, img1, img2, padding, axes)
    if m.torch is None:
        return ssim.mean(m.contiguous(img1), m.contiguous(img2), False)[0][()]
    return (_apply or _autograd_apply(m.torch))(img1, img2, ssim, train)


def fused_ssim(img1: Any, img2: Any, padding: str = "same", train: bool = True) -> Any:
    """The mean SSIM of two batches of pictures, as fused-ssim gives it, with a gradient to img1.

    img1, img2: float32 [B, CH, H, W], any B and CH, any strides; nothing is clamped, 1 is white. padding: "same" has zeros outside the
    pictures, "valid" averages [5:-5, 5:-5]. train=False keeps nothing for backward. Returns float32 [], on the same device: a tensor,
    or numpy's float32 for numpy arrays. The filter is 11 x 11 with sigma 1.5, C1 = 0.01^2, C2 = 0.03^2. NaN where a pixel is no
    number, and for "valid" below 11 pixels.

    Memory: three floats a value, and a work space, from forward to backward. TypeError, ValueError: other types, shapes or devices.
    MemoryError, LibraryError."""
    return _mean_ssim(img1, img2, padding, train, 4)


def fused_ssim3d(img1: Any, img2: Any, padding: str = "same", train: bool = True) -> Any:
    """The mean SSIM of two batches of volumes, float32 [B, CH, D, H, W], by a filter of 11 x 11 x 11; the rest as fused_ssim."""
    return _mean_ssim(img1, img2, padding, train, 5)


def ssim_gradient(img1: Array, img2: Array, padding: str = "same") -> tuple[float, Array]:
    """fused_ssim of numpy arrays, or of five axes fused_ssim3d, and its gradient to img1: the mean, and float32 of img1's shape."""
    m = _memory_of(img1, img2)
    if m.torch is not None:
        raise TypeError("tensors have their gradient by fused_ssim(...).backward()")
    ssim, a, b = _ssim_of(m, img1, img2, padding, 5 if img1.ndim == 5 else 4), m.contiguous(img1), m.contiguous(img2)
    mean, kept = ssim.mean(a, b, True)
    return float(mean), ssim.gradient(a, b, kept, np.ones(1, np.float32))


# ---- the metric of a bake ---------------------------------------------------------------------------------------------------------

def psnr_ssim(a: Any, b: Any, mask: Any = None) -> dict[str, float]:
    """PSNR and SSIM of two pictures as a bake has them (kernels/metrics): clamped to [0, 1] first, what is no number counts as 0.

    a, b: float32 [H, W, 3 or 4], numpy arrays or tensors of one device; alpha does not count. mask: uint8 [H, W] like them, 0 leaves a
    pixel out. Returns psnr (dB; inf for equal pictures), mse, ssim ("same") and ssim_valid. Waits for the device."""
    m = _memory_of(a, b)
    if a.ndim != 3 or b.ndim != 3 or tuple(a.shape[:2]) != tuple(b.shape[:2]) or a.shape[2] not in (3, 4) or b.shape[2] not in (3, 4):
        raise ValueError(f"two pictures [H, W, 3 or 4] of one size are compared, not {list(a.shape)} and {list(b.shape)}")
    if mask is not None and (tuple(mask.shape) != tuple(a.shape[:2]) or str(mask.dtype).rpartition(".")[2] != "uint8"
                             or type(mask) is not type(a) or getattr(mask, "device", None) != getattr(a, "device", None)):
        raise ValueError("a mask is uint8 [H, W], of the pictures' kind and device")
    height, width = (int(n) for n in a.shape[:2])
    a, b, mask = m.contiguous(a), m.contiguous(b), None if mask is None else m.contiguous(mask)
    out = m.floats(a, ctypes.sizeof(Metrics) // 4)
    m.run("metrics", out, (width, height), m.address(a), m.address(b), int(a.shape[2]), int(b.shape[2]), width, width,
          0 if mask is None else m.address(mask), m.address(out), variant=mask is None)
    metrics = Metrics.from_buffer_copy((out if m.torch is None else out.cpu().numpy()).tobytes())
    return {"psnr": metrics.psnr, "mse": metrics.mse, "ssim": metrics.ssim_same, "ssim_valid": metrics.ssim_valid}
