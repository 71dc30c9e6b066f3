"""operations -- distCUDA2, fused_ssim, fused_ssim3d and psnr_ssim of arrays and tensors, on the device that they are on.

A numpy array, or a torch tensor on the CPU, is computed by the CPU's sibling on all CPUs of the process; a torch tensor on a GPU by
CUDA's, on that GPU, whichever is current, on the current stream of it, without waiting. Both siblings give the same bits. The current
device stays what it was. Any number of threads may call at once: all memory is the call's own, and torch's caching allocator has it.
Layouts are changed on the device; nothing passes through the host.
"""
from __future__ import annotations

import ctypes
import sys
from typing import Any, NamedTuple, Optional

import numpy as np

from splatkiln.arrays import Array
from splatkiln.native import KnnArgs, Metrics, MetricsArgs, Ssim3dArgs, Ssim3dBackwardArgs, SsimArgs, SsimBackwardArgs, operation

LEGACY_STREAM = 1  # cudaStreamLegacy: what torch calls stream 0, and kernels/exec.h takes by this name alone


class _Memory:
    """Arrays on one device: those that are given, made float32 and contiguous, and those that a call needs."""

    def __init__(self, torch: Any, device: Any) -> None:
        """torch: the module, and the device that it names; or None for numpy's arrays."""
        self.torch, self._device = torch, device
        self.device, self.stream = -1, 0
        if torch is None or device.type == "cpu":
            return
        if device.type != "cuda":
            raise ValueError(f"tensors on the CPU or on a CUDA device are computed, not on '{device}'")
        self.device = torch.cuda.current_device() if device.index is None else device.index
        self.stream = torch.cuda.current_stream(device).cuda_stream or LEGACY_STREAM

    def empty(self, *shape: int) -> Any:
        """float32, not set."""
        return np.empty(shape, np.float32) if self.torch is None else self.torch.empty(shape, dtype=self.torch.float32, device=self._device)

    def contiguous(self, a: Any) -> Any:
        """The same values in one piece, copied on the device if they are not."""
        return np.ascontiguousarray(a) if self.torch is None else a.detach().contiguous()

    def _work(self, size: int) -> tuple[Any, int]:
        """Work space, and its address at a multiple of 256."""
        if size == 0:
            return None, 256  # of nothing: no NULL, which would ask for the size
        size += 255
        work = np.empty(size, np.uint8) if self.torch is None else self.torch.empty(size, dtype=self.torch.uint8, device=self._device)
        return work, -(-(address(work) or 0) // 256) * 256

    def run(self, op: str, args: ctypes.Structure, key: Any) -> None:
        """Runs an operation with work space of this device. key: what the size of that depends on."""
        operation(op, self.device).run(args, self.stream, key, self._work)


def address(a: Any) -> Optional[int]:
    """Where an array or tensor lies; None of None."""
    return None if a is None else a.ctypes.data if isinstance(a, np.ndarray) else a.data_ptr()


def _check_kind(v: Any, kind: Any, dtype: Any) -> None:
    if not isinstance(v, kind):
        raise TypeError(f"numpy arrays, or torch tensors, and not both, are computed; this is a {type(v).__name__}")
    if v.dtype != dtype:
        raise TypeError(f"float32 is computed, not {v.dtype}")


def _memory_of(*values: Any) -> _Memory:
    """For arrays and tensors that are all on one device and float32. TypeError, ValueError. Nothing imports torch but its user."""
    torch = sys.modules.get("torch")
    if torch is None or not any([isinstance(v, torch.Tensor) for v in values]):
        for v in values:
            _check_kind(v, np.ndarray, np.float32)
        return _Memory(None, None)
    first = values[0]
    for v in values:
        _check_kind(v, torch.Tensor, torch.float32)
        if v.device != first.device:
            raise ValueError(f"tensors of one device are computed; these are on {', '.join(str(v.device) for v in values)}")
        if v.layout != torch.strided:
            raise TypeError("dense tensors are computed")
    return _Memory(torch, first.device)


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
    out = m.empty(n)
    if n == 0:
        return out
    planar = m.contiguous(points.T if m.torch is None else points.detach().t())
    m.run("knn", KnnArgs(n=n, k=3, means=address(planar), spacing2=address(out)), n)
    return out


# ---- fused_ssim -------------------------------------------------------------------------------------------------------------------

class _Batch(NamedTuple):
    """A batch of pictures or volumes. sizes: planes, width, height, of volumes depth, and valid, as the library's structures begin."""
    op: str
    sizes: tuple[Any, ...]


_ARGS = {"ssim": (SsimArgs, SsimBackwardArgs), "ssim3d": (Ssim3dArgs, Ssim3dBackwardArgs)}


def _batch_of(img1: Any, img2: Any, padding: str, volumes: bool) -> _Batch:
    if padding not in ("same", "valid"):
        raise ValueError(f"padding is 'same' or 'valid', not {padding!r}")
    shape = img1.shape
    if len(shape) != (5 if volumes else 4) or shape != img2.shape:
        raise ValueError(f"two batches of {'volumes of one shape [B, CH, D, H, W]' if volumes else 'pictures of one shape [B, CH, H, W]'} "
                         f"are compared, not {list(shape)} and {list(img2.shape)}")
    return _Batch("ssim3d" if volumes else "ssim", (shape[0] * shape[1], *shape[:1:-1], padding == "valid"))


def _ssim_forward(m: _Memory, img1: Any, img2: Any, batch: _Batch, train: bool) -> tuple[Any, Any]:
    """The mean, of no axes, and what backward takes (or None)."""
    partials = m.empty(3, *img1.shape) if train else None
    mean = m.empty()
    args = _ARGS[batch.op][0](*batch.sizes, address(img1), address(img2), address(partials), address(mean))
    m.run(batch.op, args, batch.sizes)
    return mean, partials


def _ssim_backward(m: _Memory, img1: Any, img2: Any, batch: _Batch, partials: Any, upstream: Any) -> Any:
    gradient = m.empty(*img1.shape)
    args = _ARGS[batch.op][1](*batch.sizes, address(img1), address(img2), address(partials), address(upstream), address(gradient))
    m.run(f"{batch.op}_backward", args, batch.sizes)
    return gradient


_function: Any = None


def _autograd_function(torch: Any) -> Any:
    """The torch.autograd.Function of the mean SSIM, made once."""
    global _function
    if _function is None:

        class MeanSsim(torch.autograd.Function):  # type: ignore[misc]
            @staticmethod
            def forward(ctx: Any, img1: Any, img2: Any, m: _Memory, batch: _Batch, train: bool) -> Any:
                a, b, keep = img1.contiguous(), img2.contiguous(), train and ctx.needs_input_grad[0]
                mean, partials = _ssim_forward(m, a, b, batch, keep)
                if keep:
                    ctx.save_for_backward(a, b, partials)
                ctx.batch, ctx.train = batch, train
                return mean

            @staticmethod
            @torch.autograd.function.once_differentiable  # type: ignore[misc]
            def backward(ctx: Any, upstream: Any) -> Any:
                if not ctx.train:
                    raise RuntimeError("train=False keeps nothing that a gradient needs")
                if not ctx.needs_input_grad[0]:
                    return None, None, None, None, None
                a, b, partials = ctx.saved_tensors
                m = _Memory(torch, a.device)  # of this thread's stream
                return _ssim_backward(m, a, b, ctx.batch, partials, upstream.contiguous()), None, None, None, None

        _function = MeanSsim
    return _function


def _mean_ssim(img1: Any, img2: Any, padding: str, train: bool, volumes: bool) -> Any:
    m = _memory_of(img1, img2)
    batch = _batch_of(img1, img2, padding, volumes)
    if m.torch is None:
        return _ssim_forward(m, m.contiguous(img1), m.contiguous(img2), batch, False)[0][()]
    return _autograd_function(m.torch).apply(img1, img2, m, batch, train)


def fused_ssim(img1: Any, img2: Any, padding: str = "same", train: bool = True) -> Any:
    """The mean SSIM of two batches of pictures, as fused-ssim gives it, with a gradient to img1.

    img1, img2: float32 [B, CH, H, W], any B and CH, any strides; nothing is clamped, 1 is white. padding: "same" has zeros outside the
    pictures, "valid" averages [5:-5, 5:-5]. train=False keeps nothing for backward. Returns float32 [], on the same device: a tensor,
    or numpy's float32 for numpy arrays. The filter is 11 x 11 with sigma 1.5, C1 = 0.01^2, C2 = 0.03^2. NaN where a pixel is no
    number, and for "valid" below 11 pixels.

    Memory: three floats a value from forward to backward. TypeError, ValueError: other types, shapes or devices. MemoryError,
    LibraryError."""
    return _mean_ssim(img1, img2, padding, train, False)


def fused_ssim3d(img1: Any, img2: Any, padding: str = "same", train: bool = True) -> Any:
    """The mean SSIM of two batches of volumes, float32 [B, CH, D, H, W], by a filter of 11 x 11 x 11; the rest as fused_ssim."""
    return _mean_ssim(img1, img2, padding, train, True)


def ssim_gradient(img1: Array, img2: Array, padding: str = "same") -> tuple[float, Array]:
    """fused_ssim of numpy arrays, or of five axes fused_ssim3d, and its gradient to img1: the mean, and float32 of img1's shape."""
    m = _memory_of(img1, img2)
    if m.torch is not None:
        raise TypeError("tensors have their gradient by fused_ssim(...).backward()")
    batch, a, b = _batch_of(img1, img2, padding, img1.ndim == 5), m.contiguous(img1), m.contiguous(img2)
    mean, partials = _ssim_forward(m, a, b, batch, True)
    return float(mean), _ssim_backward(m, a, b, batch, partials, np.ones(1, np.float32))


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
    out = m.empty(ctypes.sizeof(Metrics) // 4)
    m.run("metrics", MetricsArgs(width=width, height=height, a=address(a), b=address(b), a_step=int(a.shape[2]), b_step=int(b.shape[2]), a_row=width,
                                 b_row=width, mask=address(mask), out=address(out)),
          (width, height, mask is None))
    metrics = Metrics.from_buffer_copy((out if m.torch is None else out.cpu().numpy()).tobytes())
    return {"psnr": metrics.psnr, "mse": metrics.mse, "ssim": metrics.ssim_same, "ssim_valid": metrics.ssim_valid}
