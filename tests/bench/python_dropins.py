"""python_dropins -- splatkiln's distCUDA2, fused_ssim and fused_ssim3d beside the published packages and plain torch, on one GPU.

    python_dropins.py [--peers FOLDER] [--device cuda:0] [--runs 20] [--points 1000000,10000000] [--only knn,ssim,ssim3d]

Run it with splatkiln importable (tests/bench/python_dropins does that). FOLDER is put on the path and has the published packages as
they were built for this PyTorch: fused_ssim (rahul-goel/fused-ssim) and simple_knn (camenduru/simple-knn); a package that is not there
is left out. Each figure is a median of single calls. "called" is from an idle GPU, so it includes what Python does before the last
launch; "queued" has the GPU busy until all is launched, so it is the GPU's time alone, as in a training loop that keeps it busy.

Ends with 1 where values or gradients of ours differ from those of the definition; never by a time.
"""
import argparse
import statistics
import sys

import torch
import torch.nn.functional as F

import splatkiln

TAPS = [0.0010283801, 0.0075987582, 0.0360007733, 0.1093606874, 0.2130055279, 0.2660117149]
BUSY_CYCLES = 4_000_000  # some 2 ms, longer than what is launched behind them takes to launch
BAR = 0.8  # of fused-ssim's forward and backward


def theirs(module, name):
    try:
        return getattr(__import__(module, fromlist=[name]), name)
    except (ImportError, AttributeError) as e:
        print(f"left out: {module}.{name}: {e}")
        return None


def plain_ssim(a, b):
    """As trainers write it: five convolutions of pictures, or of volumes."""
    w = torch.tensor(TAPS + TAPS[-2::-1], dtype=torch.float32).to(a)
    axes, convolve = (2, F.conv2d) if a.ndim == 4 else (3, F.conv3d)
    kernel = w[:, None] * w[None] if axes == 2 else w[:, None, None] * w[None, :, None] * w[None, None]
    kernel = kernel[None, None].expand(a.shape[1], 1, *kernel.shape).contiguous()
    filtered = lambda v: convolve(v, kernel, padding=5, groups=a.shape[1])
    mu_a, mu_b = filtered(a), filtered(b)
    var_a, var_b, cov = filtered(a * a) - mu_a**2, filtered(b * b) - mu_b**2, filtered(a * b) - mu_a * mu_b
    return ((2 * mu_a * mu_b + 1e-4) * (2 * cov + 9e-4) / ((mu_a**2 + mu_b**2 + 1e-4) * (var_a + var_b + 9e-4))).mean()


def milliseconds(f, runs, queued):
    """Median of `runs` calls, after five to warm up."""
    times = []
    for _ in range(5 + runs):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        torch.cuda.synchronize()
        if queued:
            torch.cuda._sleep(BUSY_CYCLES)
        begin.record()
        f()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end))
    return statistics.median(times[5:])


def row(what, name, called, queued, base):
    """base: the published package's two figures, or None."""
    ratio = f"   {called / base[0]:5.2f}   {queued / base[1]:5.2f}" if base else ""
    print(f"{what:34s} {name:12s} {called:9.4f} {queued:9.4f}{ratio}", flush=True)


def table(what, ways, runs):
    """ways: (name, function), the published one first, then ours. Returns the figures by name; says why where one fails."""
    figures = {}
    for name, f in ways:
        if f is None:
            continue
        try:
            figures[name] = milliseconds(f, runs, False), milliseconds(f, runs, True)
        except torch.cuda.OutOfMemoryError as e:
            print(f"{what:34s} {name:12s} out of memory: {str(e)[:80]}")
            continue
        row(what, name, *figures[name], figures.get("published"))
    return figures


def off(a, b):
    """The largest difference as a share of the largest value of b."""
    return float((a.double() - b.double()).abs().max() / b.double().abs().max())


def pictures(shape, device):
    g = torch.Generator(device=device).manual_seed(1)
    b = torch.rand(shape, generator=g, device=device)
    for axis in range(2, len(shape)):  # smooth, as pictures are
        b = (b + b.roll(1, axis) + b.roll(2, axis)) / 3
    return (b + 0.05 * torch.randn(shape, generator=g, device=device)).requires_grad_(), b


def with_backward(f, a, b):
    a.grad = None
    f(a, b).backward()


def compare_ssim(name, f, a, b, truth):
    """truth: value and gradient in double."""
    with_backward(f, a, b)
    value = float(f(a, b))
    figures = abs(value - truth[0]), off(a.grad, truth[1])
    print(f"  {name}: {value:.9f}, off by {figures[0]:.1e}; gradient off by {figures[1]:.1e} of its largest")
    return figures


def ssim(what, shape, ours, published, a_run):
    a, b = pictures(shape, a_run.device)
    one = a[:1, :1].detach()[..., :400].clone().requires_grad_(), b[:1, :1, ..., :400].contiguous()  # double convolutions take long
    twin = one[0].detach().double().requires_grad_()
    truth = plain_ssim(twin, one[1].double())
    truth.backward()
    truth = float(truth), twin.grad
    print(f"{what}, beside plain torch in double")
    for name, f in (("published", published), ("plain torch", plain_ssim)):
        if f:
            compare_ssim(name, f, *one, truth)
    value_off, gradient_off = compare_ssim("splatkiln", ours, *one, truth)
    ways = [("published", published), ("splatkiln", ours), ("plain torch", plain_ssim)]
    each = lambda g: [(name, f and (lambda f=f: g(f))) for name, f in ways]
    table(f"{what}, forward, train=False", [(n, f and (lambda f=f: f(a.detach(), b, train=False))) for n, f in ways[:2]], a_run.runs)
    table(f"{what}, forward", each(lambda f: f(a, b)), a_run.runs)
    both = table(f"{what}, forward, backward", each(lambda f: with_backward(f, a, b)), a_run.runs)
    if published and "splatkiln" in both:
        ratios = [both["splatkiln"][i] / both["published"][i] for i in (0, 1)]
        print(f"{what}: {ratios[0]:.2f} (called) and {ratios[1]:.2f} (queued) of the published; the bar is {BAR}")
    return value_off < 1e-6 and gradient_off < 1e-5


def knn(n, published, a_run):
    g = torch.Generator(device=a_run.device).manual_seed(2)
    points = torch.rand(n, 3, generator=g, device=a_run.device)
    mine, few = splatkiln.distCUDA2(points), torch.randint(0, n, (200,), generator=g, device=a_run.device)
    distances = ((points[few, None].double() - points[None].double()) ** 2).sum(-1) if n <= 1_000_000 else None
    if distances is not None:
        truth = distances.topk(4, largest=False).values[:, 1:].mean(1)
        print(f"distCUDA2 of {n} points: ours off by {off(mine[few], truth):.1e} from all pairs in double, for 200 of them")
    if published:
        print(f"distCUDA2 of {n} points: the published off from ours by {off(published(points), mine):.1e}")
    del distances
    table(f"distCUDA2, {n / 1e6:g} M", [("published", published and (lambda: published(points))), ("splatkiln", lambda: splatkiln.distCUDA2(points))],
          a_run.runs if n <= 1_000_000 else max(3, a_run.runs // 4))
    return n > 1_000_000 or off(mine[few], truth) < 1e-5


def main():
    p = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    p.add_argument("--peers")
    p.add_argument("--device", type=torch.device, default=torch.device("cuda:0"))
    p.add_argument("--runs", type=int, default=20)
    p.add_argument("--points", default="1000000,10000000")
    p.add_argument("--only", default="ssim,ssim3d,knn")
    a = p.parse_args()
    if a.peers:
        sys.path.insert(0, a.peers)
    torch.cuda.set_device(a.device)  # the published packages compute on the current device
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, {splatkiln.library()._name}; medians of {a.runs}")
    print(f"{'':47s} called ms queued ms   ratios to the published")
    only, good = a.only.split(","), True
    if "ssim" in only:
        good &= ssim("SSIM 1080p x 3", (1, 3, 1080, 1920), splatkiln.fused_ssim, theirs("fused_ssim", "fused_ssim"), a)
    if "ssim3d" in only:
        good &= ssim("SSIM 3D 128^3 x 1", (1, 1, 128, 128, 128), splatkiln.fused_ssim3d, theirs("fused_ssim", "fused_ssim3d"), a)
    if "knn" in only:
        published = theirs("simple_knn._C", "distCUDA2")
        for n in a.points.split(","):
            good &= knn(int(n), published, a)
    return 0 if good else 1


sys.exit(main())
