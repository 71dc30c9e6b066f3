"""What tests/e2e/python_torch.t checks on the CPU and tests/gpu/python.t on GPUs: splatkiln's distCUDA2, fused_ssim, fused_ssim3d and psnr_ssim
with torch.

    python_torch.py checks DEVICE               values, gradients, strides, refusals, install(); on a GPU also streams, threads, devices
    python_torch.py train DEVICE [ITERATIONS]   a training loop with both drop-ins in it, imported as trainers do
    python_torch.py times DEVICE                milliseconds beside plain torch, and beside simple-knn and fused-ssim where they are

DEVICE is cpu, or cuda:1 of two GPUs while cuda:0 is the current one: nothing may come to be on cuda:0 then. Ends with 1 and a sentence
where something is wrong, with 77 where there is no torch."""
import ctypes
import statistics
import sys
import threading
import time

try:
    import torch
    import torch.nn.functional as F
except ImportError as e:
    print(f"SKIP: no PyTorch: {e}")
    sys.exit(77)
import numpy as np

import splatkiln

TAPS = [0.0010283801, 0.0075987582, 0.0360007733, 0.1093606874, 0.2130055279, 0.2660117149]


def fail(ok, what):
    if not ok:
        sys.exit(f"FAIL: {what}")


def plain_ssim(a, b, padding="same"):
    """SSIM as trainers write it, five convolutions, in the type of its arguments: pictures, or of five axes volumes."""
    w = torch.tensor(TAPS + TAPS[-2::-1], dtype=torch.float32).to(a)
    axes, convolve = (2, F.conv2d) if a.ndim == 4 else (3, F.conv3d)
    kernel = w[:, None] * w[None] if axes == 2 else w[:, None, None] * w[None, :, None] * w[None, None]
    kernel = kernel[None, None].expand(a.shape[1], 1, *kernel.shape).contiguous()
    filtered = lambda v: convolve(v, kernel, padding=5, groups=a.shape[1])
    mu_a, mu_b = filtered(a), filtered(b)
    var_a, var_b, cov = filtered(a * a) - mu_a**2, filtered(b * b) - mu_b**2, filtered(a * b) - mu_a * mu_b
    ssim = (2 * mu_a * mu_b + 1e-4) * (2 * cov + 9e-4) / ((mu_a**2 + mu_b**2 + 1e-4) * (var_a + var_b + 9e-4))
    return (ssim if padding == "same" else ssim[(..., *[slice(5, -5)] * axes)]).mean()


def plain_knn(points):
    """The definition, in double; all pairs."""
    p = points.double()
    d = ((p[:, None] - p[None]) ** 2).sum(-1)
    d.fill_diagonal_(float("inf"))
    return d.topk(3, largest=False).values.mean(1)


def off(a, b):
    """The largest difference as a share of the largest value of b."""
    return float((a.double() - b.double()).abs().max() / b.double().abs().max())


def pictures(device, shape=(2, 3, 43, 62), seed=1):
    g = torch.Generator().manual_seed(seed)
    b = torch.rand(shape, generator=g)
    return (b + 0.2 * torch.randn(shape, generator=g)).to(device), b.to(device)


# ---- values -----------------------------------------------------------------------------------------------------------------------

def check_knn(device):
    g = torch.Generator().manual_seed(3)
    for n in (1, 3, 4, 700):
        host = torch.rand(n, 3, generator=g)
        points = host.to(device)
        got = splatkiln.distCUDA2(points)
        fail(got.shape == (n,) and got.dtype == torch.float32 and got.device == points.device, f"distCUDA2 of {n} points")
        fail(np.array_equal(got.cpu().numpy(), splatkiln.distCUDA2(host.numpy()), equal_nan=True), f"distCUDA2 of {n} points: other bits than numpy's on the CPU")
        if n > 3:
            fail(off(got, plain_knn(points)) < 1e-6, "distCUDA2 is not the definition")
    wide = torch.rand(700, 8, generator=g).to(device)
    for strided in (wide[:, 1:4], wide[::3, 2:5], wide.t()[:3].t()):
        fail(torch.equal(splatkiln.distCUDA2(strided), splatkiln.distCUDA2(strided.clone(memory_format=torch.contiguous_format))), "distCUDA2 of strided points")
    fail(splatkiln.distCUDA2(torch.empty(0, 3, device=device)).shape == (0,), "distCUDA2 of nothing")
    fail(not splatkiln.distCUDA2(wide[:, :3].requires_grad_()).requires_grad, "distCUDA2 has a gradient")


def ssim_off(f, device, shape, padding):
    """Compares with autograd in double, and the bits with numpy's on the CPU; how far the gradient is off."""
    a, b = pictures(device, shape)
    a.requires_grad_()
    mine = f(a, b, padding=padding)
    (3 * mine).backward()
    twin = a.detach().double().requires_grad_()
    plain = plain_ssim(twin, b.double(), padding)
    (3 * plain).backward()
    what = f"{f.__name__} {padding} {shape}"
    fail(mine.shape == () and abs(float(mine) - float(plain)) < 1e-6, f"{what}: {float(mine)}, not {float(plain)}")
    value, gradient = splatkiln.ssim_gradient(a.detach().cpu().numpy(), b.cpu().numpy(), padding)
    fail(value == float(mine) == float(f(a.detach().cpu().numpy(), b.cpu().numpy(), padding)) and np.allclose(3 * gradient, a.grad.cpu().numpy(), rtol=3e-7, atol=0),
         f"{what}: other bits than numpy's on the CPU")
    a.grad = None
    f(a, b, padding=padding).backward()
    fail(np.array_equal(gradient, a.grad.cpu().numpy()), f"{what}: other bits of the gradient than numpy's on the CPU")
    return off(3 * a.grad, twin.grad)


def check_ssim3d(device):
    worst = max(ssim_off(splatkiln.fused_ssim3d, device, shape, padding) for padding in ("same", "valid")
                for shape in ((1, 1, 11, 11, 11), (2, 3, 13, 22, 17), (1, 2, 45, 19, 70)))
    fail(worst < 1e-6, f"the gradient of fused_ssim3d is off by {worst:.1e}")
    a, b = pictures(device, (1, 2, 12, 14, 16))
    turned = a.transpose(2, 4).contiguous().transpose(2, 4).requires_grad_()
    fail(torch.equal(splatkiln.fused_ssim3d(turned, b), splatkiln.fused_ssim3d(a, b)), "fused_ssim3d of strided volumes")
    print(f"gradient of fused_ssim3d: off by {worst:.1e} of its largest from autograd in double")


def check_ssim(device):
    worst = max(ssim_off(splatkiln.fused_ssim, device, shape, padding) for padding in ("same", "valid")
                for shape in ((1, 1, 11, 11), (2, 3, 43, 62), (1, 5, 30, 173), (1, 3, 200, 410)))
    fail(worst < 1e-5, f"the gradient of fused_ssim is off by {worst:.1e}")
    a, b = pictures(device)
    fail(float(splatkiln.fused_ssim(a, b, train=False)) == float(splatkiln.fused_ssim(a, b)), "train=False is another number")
    second = b.clone().requires_grad_()
    splatkiln.fused_ssim(a, second).backward()
    fail(second.grad is None, "fused_ssim has a gradient to img2")
    turned = a.transpose(2, 3).contiguous().transpose(2, 3).requires_grad_()
    other = a.clone().requires_grad_()
    splatkiln.fused_ssim(turned, b).backward()
    splatkiln.fused_ssim(other, b.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)).backward()
    fail(torch.equal(turned.grad, other.grad), "fused_ssim of strided pictures")
    fail(np.isnan(float(splatkiln.fused_ssim(a[:, :, :10], b[:, :, :10], "valid"))), "nothing valid")
    print(f"gradient of fused_ssim: off by {worst:.1e} of its largest from autograd in double")


def check_metric(device):
    a, b = pictures(device, (1, 3, 40, 50))
    m = splatkiln.psnr_ssim(a[0].permute(1, 2, 0), b[0].permute(1, 2, 0))
    fail(abs(m["ssim"] - float(plain_ssim(a.clamp(0, 1), b))) < 1e-6, "psnr_ssim: SSIM")
    fail(abs(m["psnr"] + 10 * np.log10(float(((a.clamp(0, 1) - b).double() ** 2).mean()))) < 1e-5, "psnr_ssim: PSNR")


def check_refusals(device):
    a, b = pictures(device)
    points = torch.rand(9, 3, device=device)
    wrong = [(TypeError, splatkiln.distCUDA2, points.double()), (ValueError, splatkiln.distCUDA2, points.t()), (TypeError, splatkiln.distCUDA2, [[0.0] * 3]),
             (ValueError, splatkiln.distCUDA2, points[0]), (ValueError, splatkiln.fused_ssim, a, b[:1]), (ValueError, splatkiln.fused_ssim, a[0], b[0]), (ValueError, splatkiln.fused_ssim3d, a, b),
             (TypeError, splatkiln.fused_ssim, a.half(), b.half()), (ValueError, splatkiln.fused_ssim, a, b, "full"), (TypeError, splatkiln.fused_ssim, a, b.cpu().numpy()),
             (ValueError, splatkiln.fused_ssim, a[:0], b[:0]), (ValueError, splatkiln.psnr_ssim, a[0], b[0])]
    if a.is_cuda:
        wrong.append((ValueError, splatkiln.fused_ssim, a, b.cpu()))
    for error, call, *args in wrong:
        try:
            call(*args)
        except error:
            continue
        fail(False, f"{call.__name__} takes {[str(getattr(x, 'shape', x)) for x in args]}")


def refused(call, what):
    try:
        call()
    except RuntimeError:
        return
    fail(False, what)


def check_autograd(device):
    """What the graph keeps, and what it refuses to differentiate."""
    a, b = pictures(device)
    a.requires_grad_()
    refused(lambda: splatkiln.fused_ssim(a, b, train=False).backward(), "train=False has a gradient")
    value = splatkiln.fused_ssim(a, b)
    value.backward()
    refused(value.backward, "a graph that was freed has a gradient")
    gradient, = torch.autograd.grad(splatkiln.fused_ssim(a, b), a, create_graph=True)
    fail(torch.equal(gradient, a.grad), "create_graph=True changes the gradient")
    squared, = torch.autograd.grad(splatkiln.fused_ssim(a, b) ** 2, a, create_graph=True)
    refused(lambda: (squared * a).sum().backward(), "there is a second derivative, which is none")
    value, changed = splatkiln.fused_ssim(a * 1, b), b.clone()
    late = splatkiln.fused_ssim(a, changed)
    changed.zero_()
    refused(late.backward, "a picture that was changed in between is not noticed")
    twice, = torch.autograd.grad(value + value, a)
    fail(torch.equal(twice, 2 * gradient), "the gradient of a sum")


def check_kept(device):
    """More shapes than are kept, and threads that share what is kept of a shape."""
    widths = range(11, 11 + splatkiln.operations.KEPT_MOST + 20)
    wide, other = pictures(device, (1, 1, 12, widths[-1]))
    first = [float(splatkiln.fused_ssim(wide[..., :w], other[..., :w], "valid")) for w in widths]
    again = [float(splatkiln.fused_ssim(wide[..., :w], other[..., :w], "valid")) for w in widths]
    fail(first == again and np.isfinite(first).all() and len(set(first)) > 200, "other numbers when shapes come again")
    pairs, want, wrong = [pictures(device, seed=k) for k in range(4)], [], []

    def both(k):
        twin = pairs[k][0].clone().requires_grad_()
        value = splatkiln.fused_ssim(twin, pairs[k][1])
        value.backward()
        return float(value), twin.grad

    def work(k):
        for _ in range(20):
            value, gradient = both(k)
            if value != want[k][0] or not torch.equal(gradient, want[k][1]):
                wrong.append(k)

    want += [both(k) for k in range(4)]
    them = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in them:
        t.start()
    for t in them:
        t.join()
    fail(not wrong and len({value for value, _ in want}) == 4, f"other numbers in threads {sorted(set(wrong))} of one shape")


def check_install(device):
    """The call sites of INRIA's scene/gaussian_model.py and train.py."""
    splatkiln.install()
    from fused_ssim import fused_ssim, fused_ssim3d
    fail(fused_ssim3d is splatkiln.fused_ssim3d, "fused_ssim3d is another one")
    from simple_knn._C import distCUDA2
    points = np.random.default_rng(1).random((300, 3))
    dist2 = torch.clamp_min(distCUDA2(torch.from_numpy(np.asarray(points)).float().to(device)), 0.0000001)
    scales = torch.log(torch.sqrt(dist2))[..., None].repeat(1, 3)
    image, gt = (p[0] for p in pictures(device, (1, 3, 40, 50)))
    value = fused_ssim(image.unsqueeze(0), gt.unsqueeze(0))
    fail(scales.shape == (300, 3) and torch.isfinite(scales).all() and 0 < float(value) < 1, "INRIA's call sites")


# ---- GPUs -------------------------------------------------------------------------------------------------------------------------

def contexts():
    """Numbers of the GPUs on which this process has a context."""
    cuda, out = ctypes.CDLL("libcuda.so.1"), []
    for i in range(torch.cuda.device_count()):
        flags, active, device = ctypes.c_uint(), ctypes.c_int(), ctypes.c_int()
        fail(cuda.cuDeviceGet(ctypes.byref(device), i) == 0 and cuda.cuDevicePrimaryCtxGetState(device, ctypes.byref(flags), ctypes.byref(active)) == 0, "libcuda")
        out += [i] if active.value else []
    return out


_of_torch = []


def nothing_elsewhere(device):
    """The first call notes where PyTorch alone has made contexts; later ones see that there are no more."""
    if device.type != "cuda":
        return
    if not _of_torch:
        torch.ones(1, device=device).sum().item()
        _of_torch.extend(contexts())
        return
    fail(contexts() == _of_torch, f"this process has contexts on {contexts()}; PyTorch alone had them on {_of_torch}")
    print(f"contexts: on {_of_torch}")


def note_streams(device):
    """At the end of torch.cuda.stream PyTorch sets the device that was current, which makes a context there: that one is PyTorch's."""
    with torch.cuda.stream(torch.cuda.Stream(device)):
        torch.ones(1, device=device)
    _of_torch[:] = contexts()
    print(f"contexts with PyTorch's streams: on {_of_torch}")


def check_stream(device, stream):
    """On a stream that is busy before and whose tensors change behind: wrong numbers unless all runs on it, in order."""
    want, (a, b) = splatkiln.distCUDA2(torch.rand(50000, 3, generator=torch.Generator().manual_seed(7)).to(device)), pictures(device)
    want_ssim = float(splatkiln.fused_ssim(a, b))
    torch.cuda.synchronize(device)
    with torch.cuda.stream(stream):
        # Once before, so that torch has memory for this stream and asks the driver for none.
        warm = [splatkiln.distCUDA2(torch.zeros(50000, 3, device=device)), splatkiln.fused_ssim(a.clone(), b), torch.zeros_like(a)]
        del warm
        source = torch.rand(50000, 3, generator=torch.Generator().manual_seed(7)).to(device)
        points, late = torch.zeros_like(source), torch.zeros_like(a)
        stream.synchronize()
        torch.cuda._sleep(200_000_000)
        points.copy_(source)
        late.copy_(a)
        got, ssim = splatkiln.distCUDA2(points), splatkiln.fused_ssim(late, b)
        points.zero_()
        late.zero_()
        busy = not stream.query()
    stream.synchronize()
    fail(busy, "a call waits for its stream")
    fail(torch.equal(got, want) and float(ssim) == want_ssim, f"other numbers on {stream}")


def check_threads(device):
    a, b = pictures(device)
    points = torch.rand(20000, 3, generator=torch.Generator().manual_seed(5)).to(device)
    want, want_ssim, wrong = splatkiln.distCUDA2(points), float(splatkiln.fused_ssim(a, b)), []

    def work(k):
        with torch.cuda.stream(torch.cuda.Stream(device) if k % 2 else torch.cuda.default_stream(device)):
            torch.cuda.current_stream(device).synchronize()
            for _ in range(50):
                twin = a.clone().requires_grad_()
                value = splatkiln.fused_ssim(twin, b)
                value.backward()
                if not (torch.equal(splatkiln.distCUDA2(points), want) and float(value) == want_ssim and torch.isfinite(twin.grad).all()):
                    wrong.append(k)

    torch.cuda.synchronize(device)
    them = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in them:
        t.start()
    for t in them:
        t.join()
    fail(not wrong, f"other numbers in threads {sorted(set(wrong))}")


def check_gpu(device):
    check_stream(device, torch.cuda.default_stream(device))
    check_stream(device, torch.cuda.Stream(device))
    check_threads(device)
    fail(torch.cuda.current_device() == 0, "the current device is another one")


def checks(device):
    for check in (check_knn, check_ssim, check_ssim3d, check_metric, check_refusals, check_autograd, check_kept, check_install):
        check(device)
        print(f"{check.__name__} on {device}: done")
    nothing_elsewhere(device)
    if device.type == "cuda":
        note_streams(device)
        check_gpu(device)
        print(f"check_gpu on {device}: done")
        nothing_elsewhere(device)


# ---- a training loop --------------------------------------------------------------------------------------------------------------

def train(device, iterations=3000):
    """Points with colours are splatted bilinearly into four views of a wall and trained against a picture; every hundredth iteration
    half of them are split by the distance to their neighbours, as densification does, and the others dropped."""
    splatkiln.install()
    from fused_ssim import fused_ssim
    from simple_knn._C import distCUDA2
    torch.manual_seed(1)
    n, side = (60000, 256) if device.type == "cuda" else (2000, 48)
    yy, xx = torch.meshgrid(torch.linspace(0, 6.28, side), torch.linspace(0, 6.28, side), indexing="ij")
    truth = torch.stack([0.5 + 0.4 * torch.sin((k + 1) * xx) * torch.cos(yy) for k in range(3)])[None].to(device)
    state = {"points": torch.rand(n, 3, device=device), "colors": torch.rand(n, 3, device=device)}

    def draw():
        at = state["points"][:, :2].clamp(0, 1) * (side - 2)
        low, share = at.detach().floor().long(), at - at.detach().floor()
        picture = torch.zeros(3, side * side, device=device)
        weight = torch.full((side * side,), 1e-3, device=device)
        for dx in (0, 1):
            for dy in (0, 1):
                w = (share[:, 0] if dx else 1 - share[:, 0]) * (share[:, 1] if dy else 1 - share[:, 1])
                where = (low[:, 1] + dy) * side + low[:, 0] + dx
                picture, weight = picture.index_add(1, where, (state["colors"] * w[:, None]).t()), weight.index_add(0, where, w)
        return (picture / weight).reshape(1, 3, side, side)

    def optimizer():
        for name in state:
            state[name] = state[name].detach().requires_grad_()
        # A step of a point is a quarter of a pixel.
        return torch.optim.Adam([{"params": [state["points"]], "lr": 0.25 / side}, {"params": [state["colors"]], "lr": 5e-3}])

    adam, first, begin = optimizer(), None, time.perf_counter()
    for i in range(iterations):
        if i % 100 == 0 and i:
            spread = distCUDA2(state["points"].detach()).sqrt()
            fail(bool(torch.isfinite(spread).all()), f"distCUDA2 at iteration {i}")
            keep = spread.argsort(descending=True)[: n // 2]
            moved = state["points"].detach()[keep] + torch.randn(n // 2, 3, device=device) * torch.clamp_min(spread[keep, None], 1e-7) / 2
            moved = moved.clamp(0, 1)  # or those with the most room around them leave the picture, a hundred splits later all of them
            state["points"] = torch.cat([state["points"].detach()[keep], moved])
            state["colors"] = torch.cat([state["colors"].detach()[keep]] * 2)
            adam = optimizer()
        picture = draw()
        loss = 0.8 * (picture - truth).abs().mean() + 0.2 * (1 - fused_ssim(picture, truth))
        adam.zero_grad()
        loss.backward()
        adam.step()
        first = float(loss) if first is None else first
    last = float(loss)
    fail(np.isfinite(last) and (last < 0.5 * first or iterations < 300), f"the loss went from {first} to {last}")
    fail(device.type != "cuda" or torch.cuda.current_device() == 0, "the current device is another one")
    nothing_elsewhere(device)
    print(f"train on {device}: {iterations} iterations, loss {first:.4f} to {last:.4f}, {time.perf_counter() - begin:.1f} s")


# ---- times ------------------------------------------------------------------------------------------------------------------------

def milliseconds(device, f, runs=30):
    """Median of single runs, after five to warm up."""
    out = []
    for i in range(5 + runs):
        if device.type == "cuda":
            with torch.cuda.device(device):
                begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
                begin.record()
                f()
                end.record()
                torch.cuda.synchronize(device)
                out.append(begin.elapsed_time(end))
        else:
            begin = time.perf_counter()
            f()
            out.append(1e3 * (time.perf_counter() - begin))
    return statistics.median(out[5:])


def theirs(module, name):
    """Their own function, where it can be imported; on a GPU alone."""
    try:
        return getattr(__import__(module, fromlist=[name]), name)
    except ImportError:
        return None


def times(device):
    a, b = pictures(device, (1, 3, 1080, 1920))
    a.requires_grad_()
    knn_of_others, ssim_of_others = (theirs("simple_knn._C", "distCUDA2"), theirs("fused_ssim", "fused_ssim")) if device.type == "cuda" else (None, None)

    def both(f):
        a.grad = None
        f(a, b).backward()

    runs = 30 if device.type == "cuda" else 3
    for turn in range(2):
        for name, f in (("splatkiln", splatkiln.fused_ssim), ("fused-ssim", ssim_of_others), ("plain torch", plain_ssim)):
            if f:
                forward, all_of_it = milliseconds(device, lambda: f(a, b), runs), milliseconds(device, lambda: both(f), runs)
                print(f"SSIM 1080p x 3, turn {turn}, {name}: forward {forward:.4f} ms, forward and backward {all_of_it:.4f} ms")
            elif turn == 0:
                print(f"SSIM 1080p x 3: no {name} here; published on an H200: forward with what training keeps 0.170 ms")
    for n in (1_000_000, 10_000_000) if device.type == "cuda" else (100_000,):
        points = torch.rand(n, 3, device=device)
        print(f"distCUDA2 of {n} points, splatkiln: {milliseconds(device, lambda: splatkiln.distCUDA2(points), 5):.3f} ms")
        if knn_of_others and device.index in (None, 0):  # theirs computes on the current device
            print(f"distCUDA2 of {n} points, simple-knn: {milliseconds(device, lambda: knn_of_others(points), 5):.3f} ms")
        else:
            print("distCUDA2: no simple-knn on this device; measured on an H200: 28 ms for 1 M uniform points, 377 ms for 10 M")


def main():
    if len(sys.argv) not in (3, 4) or sys.argv[1] not in ("checks", "train", "times"):
        sys.exit(__doc__)
    device = torch.device(sys.argv[2])
    if device.type == "cuda":
        if not torch.cuda.is_available() or (device.index or 0) >= torch.cuda.device_count():
            print(f"SKIP: PyTorch sees no {device}")
            sys.exit(77)
        device = torch.device("cuda", device.index or 0)
    nothing_elsewhere(device)
    {"checks": checks, "train": train, "times": times}[sys.argv[1]](device, *map(int, sys.argv[3:]))


main()
