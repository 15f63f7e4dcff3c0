#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Calls by chance on arrays of PyTorch, JAX, CuPy and Numba that are on a GPU, with any shapes,
strides, types, modes and streams, in several threads.

    device_arrays.py LIBQRTOOL [--calls 2000] [--budget SECONDS] [--seed 1] [--only CALL]
                     [--threads 4] [--shapes 5] [--share 1/1] [--kinds torch,jax,cupy,numba]
                     [--opencl DEVICE] [--growth CALLS]

Factors hold the bars, by NumPy in long double, and solutions are those of numpy.linalg.lstsq. Both
have the bits of the same call on NumPy's arrays on cuda:0, and with --opencl on that device of
OpenCL. --growth: as many calls more, and how much less memory of the device is free after them.
--budget: after that time no further call begins. Shapes are few, since each has kernels to build;
batches and strides are by chance. Where a call is wrong its number is printed, with which --only
repeats it and prints all, and the exit code is 1. --share 2/8: of the shapes the second and every
eighth after it, so that several processes at once do not build the same kernels. A kind that is
not installed is left out, which the last line says. No test, since it needs a GPU.
"""
import argparse
import collections
import contextlib
import gc
import importlib
import os
import pathlib
import sys
import threading
import time
import traceback
import warnings

import numpy as np

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "0")  # JAX makes the last of several GPUs current
TYPES = (np.float32, np.float64, np.complex64, np.complex128)
SHAPES = ((64, 64), (48, 16), (7, 3), (20, 50), (256, 128), (1000, 32), (100, 30), (1, 1), (33, 33),
          (128, 1), (300, 8), (200, 150), (512, 512), (3000, 100), (5, 200), (40000, 16))
MOST_LINES = 38  # of what is wrong
MODES = ("reduced", "complete", "r", "raw")
PAUSE = 5_000_000  # cycles, for which the stream is busy before a call


def say(text, lines=[]):
    lines.append(text)
    if len(lines) <= MOST_LINES:
        print(text, file=sys.stderr)


class Torch:
    orders = ("packed", "turned", "cut", "spread", "swapped")
    builds_for_batches = False

    def __init__(self):
        self.torch = importlib.import_module("torch")
        if not self.torch.cuda.is_available():
            raise ImportError("it sees no GPU")
        self.streams = [None, *(self.torch.cuda.Stream() for _ in range(3))]

    def stream(self, number):
        stream = self.streams[number % len(self.streams)]
        return self.torch.cuda.stream(stream) if stream else contextlib.nullcontext()

    def array(self, host):
        """The array, whose numbers come late in the order of the stream."""
        given = self.torch.from_numpy(host).cuda()
        late = self.torch.full_like(given, float("nan"))
        self.torch.cuda._sleep(PAUSE)
        late.copy_(given)
        return late

    def spread(self, array, shape):
        return array.expand(shape)

    def is_own(self, result):
        return isinstance(result, self.torch.Tensor) and result.is_cuda

    def host(self, result):
        return result.cpu().numpy()


class Cupy:
    orders = (*Torch.orders, "reversed")
    builds_for_batches = False

    def __init__(self):
        self.cupy = importlib.import_module("cupy")
        self.streams = [self.cupy.cuda.Stream.null, *(
            self.cupy.cuda.Stream(non_blocking=bool(way)) for way in range(2))]

    def stream(self, number):
        return self.streams[number % len(self.streams)]

    def array(self, host):
        return self.cupy.asarray(host) * 1

    def spread(self, array, shape):
        return self.cupy.broadcast_to(array, shape)

    def is_own(self, result):
        return isinstance(result, self.cupy.ndarray)

    def host(self, result):
        return self.cupy.asnumpy(result)


class Jax:
    orders = ("packed",)  # as all of its arrays are
    builds_for_batches = True

    def __init__(self):
        self.jax = importlib.import_module("jax")
        self.jax.config.update("jax_enable_x64", True)
        self.gpu = self.jax.devices("gpu")[0]
        self.late = self.jax.jit(lambda x: self.jax.lax.fori_loop(0, 50, lambda _, y: y * 1, x))

    def stream(self, number):
        return contextlib.nullcontext()

    def array(self, host):
        return self.late(self.jax.device_put(host, self.gpu))

    def is_own(self, result):
        return isinstance(result, self.jax.Array) and result.devices() == {self.gpu}

    def host(self, result):
        return np.asarray(result)


class Numba:
    orders = ("packed", "cut")
    builds_for_batches = False

    def __init__(self):
        self.cuda = importlib.import_module("numba.cuda")
        if not self.cuda.is_available():
            raise ImportError("it sees no GPU")
        self.streams = [0, self.cuda.stream()]

    def stream(self, number):
        return contextlib.nullcontext()

    def array(self, host):
        stream = self.streams[threading.get_ident() % 2]
        return self.cuda.to_device(host, stream=stream)

    def is_own(self, result):
        return type(result).__name__ == "DeviceNDArray"

    def host(self, result):
        return result.copy_to_host()


KINDS = {"torch": Torch, "jax": Jax, "cupy": Cupy, "numba": Numba}


def numbers(chance, shape, dtype):
    array = chance.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        array = array + 1j * chance.standard_normal(shape)
    return array.astype(dtype)


def cut(chance, shape):
    """A larger shape, and the slices of it that have this one."""
    *batch, m, n = shape
    (row, down), (column, step) = chance.integers((0, 1), (3, 4), (2, 2)).tolist()
    more = int(chance.integers(3))
    whole = (*batch, row + down * m + more, column + step * n)
    return whole, (*(slice(None) for _ in batch), slice(row, row + down * m, down),
                   slice(column, None, step))


def in_order(kind, chance, order, shape, dtype):
    """(the array on the host, the same on the device), in memory that is laid out so."""
    *batch, m, n = shape

    def both(whole, view):
        host = numbers(chance, whole, dtype)
        return view(host, np.broadcast_to), view(kind.array(host), getattr(kind, "spread", None))

    if order == "turned":
        return both((*batch, n, m), lambda x, _: x.swapaxes(-1, -2))
    if order == "cut":
        whole, slices = cut(chance, shape)
        return both(whole, lambda x, _: x[slices])
    if order == "spread" and batch:
        return both((m, n), lambda x, spread: spread(x, shape))
    if order == "swapped" and len(batch) == 2:  # one stride does not reach every matrix
        return both((batch[1], batch[0], m, n), lambda x, _: x.swapaxes(0, 1))
    if order == "reversed":
        return both(shape, lambda x, _: x[..., ::-1, ::-1])
    return both(shape, lambda x, _: x)


def norms(matrices):
    return np.sqrt((np.abs(matrices) ** 2).sum(axis=(-1, -2)))


def wide(array):
    return array.astype(np.promote_types(array.dtype, np.float64))


def wider(array):
    """Float64 is too coarse for the errors of float64."""
    return array.astype(np.promote_types(array.dtype, np.longdouble))


class Calls:
    def __init__(self, qrtool, kinds, args):
        self.qrtool, self.kinds, self.args = qrtool, kinds, args
        first, step = map(int, args.share.split("/"))
        self.shapes = SHAPES[:args.shapes][first - 1::step]

    def same(self, what, ours, call):
        """Whether the results have the bits of the call on NumPy's arrays."""
        for device in ("cuda:0", *([self.args.opencl] if self.args.opencl else [])):
            try:
                theirs = call(device)
            except (self.qrtool.CallError, self.qrtool.DeviceError):  # the CPU does such work
                theirs = call("cpu")
            for one, other in zip(ours, theirs if isinstance(theirs, tuple) else (theirs,)):
                one, other = np.asarray(one), np.asarray(other)
                assert one.shape == other.shape and one.dtype == other.dtype, (
                    what, device, one.shape, other.shape, one.dtype, other.dtype)
                assert one.tobytes() == other.tobytes(), (what, "other bits than on", device)

    def taken(self, kind, results, count):
        """The results on the host; the first ones must be of the caller's kind."""
        for result in results[:count]:
            assert kind.is_own(result), type(result)
        return [kind.host(result) if number < count else result
                for number, result in enumerate(results)]

    def factor(self, kind, chance, shape, dtype):
        mode = MODES[chance.integers(4)]
        options = {"check": ("full", "probe", "none")[chance.integers(3)],
                   "sign": (None, "lapack")[chance.integers(2)]}
        if mode != "raw" and chance.integers(8) == 0:
            options["pivoting"] = True
        order = kind.orders[chance.integers(len(kind.orders))]
        host, there = in_order(kind, chance, order, shape, dtype)
        results = self.qrtool.qr(there, mode, **options)
        del there  # its memory may be used again in the order of the stream
        results = results if isinstance(results, tuple) else (results,)
        ours = self.taken(kind, results, len(results))
        if mode in ("reduced", "complete"):
            a = host
            if "pivoting" in options:
                a = np.take_along_axis(host, np.asarray(ours[2])[..., None, :], -1)
            self.hold_bars(a, ours[0], ours[1], mode, shape)
        self.same((mode, order, options), ours,
                  lambda device: self.qrtool.qr(host, mode, device=device, **options))

    def hold_bars(self, a, q, r, mode, shape):
        _, report = self.qrtool.verify(a, q, r, report=True, device="cpu")
        a, q, r = wider(a), wider(q), wider(r)
        columns = shape[-2] if mode == "complete" else min(shape[-2:])
        one = np.eye(columns)
        residual = norms(a - q @ r) / np.maximum(norms(a), 1e-300)
        assert np.all(residual <= report.residual_bar), ("residual", residual.max())
        error = norms(one - np.swapaxes(q.conj(), -1, -2) @ q)
        assert np.all(error <= report.orthogonality_bar), ("orthogonality", error.max())

    def solve(self, kind, chance, shape, dtype):
        *batch, m, n = shape
        m, p = max(m, n) + 2, (1, 3)[chance.integers(2)]
        options = {"errors": bool(chance.integers(2))}
        host_a, a = in_order(kind, chance, kind.orders[chance.integers(len(kind.orders))],
                             (*batch, m, n), dtype)
        host_b = numbers(chance, (m,) if chance.integers(3) == 0 else (*batch, m, p), dtype)
        b, host_w, w = kind.array(host_b), None, None
        if chance.integers(3) == 0:
            host_w = (chance.random(m) + 0.1).astype(np.empty(0, dtype).real.dtype)
            w = kind.array(host_w)
        results = self.qrtool.lstsq(a, b, w, **options)
        del a, b, w
        ours = self.taken(kind, [results[0], *results[3:]], 1 + options["errors"])
        roots = np.ones(m) if host_w is None else np.sqrt(wide(host_w))
        some = next(iter(np.ndindex(*batch)))
        of_a = wide(host_a[some]) * roots[:, None]
        of_b = wide(host_b if host_b.ndim == 1 else host_b[some])
        x = np.linalg.lstsq(of_a, (of_b.T * roots).T, rcond=None)[0]
        bar = 100 * np.finfo(dtype).eps * np.linalg.cond(of_a) ** 2 * max(1, np.abs(x).max())
        assert np.all(np.abs(ours[0][some] - x) <= bar), ("x", np.abs(ours[0][some] - x).max())
        if np.prod(batch) == 1:  # which the CPU solves where it comes from the host
            return
        self.same(("lstsq", options), [ours[0], *results[1:3], *ours[1:]],
                  lambda device: self.qrtool.lstsq(host_a, host_b, host_w, device=device,
                                                   **options))

    def verify(self, kind, chance, shape, dtype):
        host, a = in_order(kind, chance, "packed", shape, dtype)
        q, r = self.qrtool.qr(host, device="cpu")
        if chance.integers(2):
            q[(0,) * q.ndim] += 1
        ours = self.qrtool.verify(a, kind.array(q), kind.array(r), report=True)
        theirs = self.qrtool.verify(host, q, r, report=True, device="cuda:0")
        assert ours[0] == theirs[0] and np.array_equal(ours[1].status, theirs[1].status)
        for name in ours[1].dtype.names:  # the device has sums of its own
            np.testing.assert_allclose(ours[1][name], theirs[1][name], 1e-5, 1e-15, err_msg=name)

    def batch_of(self, kind, chance, m, n):
        most = max(1, min(40, 200_000 // (m * n)))
        ways = np.random.default_rng((m, n)) if kind.builds_for_batches else chance
        count = int(ways.integers(1, most + 1))
        return [(), (count,), (2, count)][chance.integers(3)]

    def run(self, number):
        chance = np.random.default_rng((self.args.seed, number))
        name = list(self.kinds)[number % len(self.kinds)]
        kind = self.kinds[name]
        m, n = self.shapes[chance.integers(len(self.shapes))]
        shape = (*self.batch_of(kind, chance, m, n), m, n)
        dtype = TYPES[chance.integers(4)]
        what = ("factor", "factor", "factor", "solve", "verify")[chance.integers(5)]
        try:
            with kind.stream(int(chance.integers(8))):
                getattr(self, what)(kind, chance, shape, dtype)
        except Exception as trouble:
            say(f"call {number}, {name} {what} {shape} {np.dtype(dtype).name}: "
                f"{type(trouble).__name__}: {' '.join(str(trouble).split())[:200]}")
            if self.args.only is not None:
                traceback.print_exc()
            return name, False
        return name, True


def refused(name, error, word, call):
    try:
        call()
    except error as trouble:
        if word in str(trouble):
            return True
        say(f"{name}: {str(trouble)[:200]}")
    except Exception as trouble:
        say(f"{name}: {type(trouble).__name__}: {str(trouble)[:200]}")
    else:
        say(f"{name}: nothing is raised")
    return False


def torch_manners(qrtool, torch):
    """What PyTorch's users may try."""
    a = torch.randn(3, 6, 4, device="cuda")
    z = torch.randn(3, 6, 4, device="cuda", dtype=torch.complex64)
    with_gradient = a.clone().requires_grad_()
    error = qrtool.CallError
    yield refused("gradient", error, "a.detach()", lambda: qrtool.qr(with_gradient))
    with torch.no_grad():
        yield torch.equal(qrtool.qr(with_gradient).R, qrtool.qr(a).R)
    for view in (z.conj(), z.mT.conj(), z.conj().imag, z.real):
        plain = view.resolve_conj().resolve_neg().contiguous()
        yield torch.equal(qrtool.qr(view).R, qrtool.qr(plain).R)
    yield refused("half", TypeError, "float16", lambda: qrtool.qr(a.half()))
    yield refused("integers", error, "float64 first", lambda: qrtool.qr(a.int()))
    yield refused("sparse", error, "to_dense", lambda: qrtool.qr(a[0].to_sparse()))
    yield refused("host and device", error, "b is in host memory",
                  lambda: qrtool.lstsq(a, torch.ones(6)))
    yield refused("another device", error, "cuda:0", lambda: qrtool.qr(a, device="cpu"))
    yield refused("vmap", error, "torch.func", lambda: torch.func.vmap(
        lambda x: qrtool.qr(x).R)(a))
    from torch._subclasses.fake_tensor import FakeTensorMode
    with FakeTensorMode() as mode:
        fake = mode.from_tensor(a)
        yield refused("fake tensor", error, "torch.compile", lambda: qrtool.qr(fake))
    compiled = torch.compile(lambda x: qrtool.qr(x * 2).R + 1, backend="eager")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield torch.equal(compiled(a), qrtool.qr(a * 2).R + 1)
        yield not [each for each in caught if "ynamo" in str(each.message)]
    pinned = torch.randn(5, 3).pin_memory()
    yield isinstance(qrtool.qr(pinned).R, np.ndarray)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.stream(torch.cuda.Stream()):
        graph.capture_begin(capture_error_mode="relaxed")
        yield refused("capture", error, "", lambda: qrtool.qr(a, check="none"))
        with contextlib.suppress(Exception):
            graph.capture_end()
    torch.cuda.synchronize()
    q, r, p = qrtool.qr(a, pivoting=True)
    yield p.is_cuda and torch.allclose(a.gather(-1, p[:, None].expand(3, 6, 4)), q @ r, atol=1e-5)
    yield qrtool.verify(a, q, r, p=p)
    empty = qrtool.qr(torch.empty(0, 4, 2, device="cuda"))
    yield empty.Q.shape == (0, 4, 2) and empty.R.is_cuda


def jax_manners(qrtool, jax):
    a = jax.device_put(np.random.default_rng(1).standard_normal((6, 4)), jax.devices("gpu")[0])
    yield refused("jit", qrtool.CallError, "pure_callback", lambda: jax.jit(qrtool.qr)(a))
    shapes = [jax.ShapeDtypeStruct(shape, a.dtype) for shape in ((6, 4), (4, 4))]
    q, r = jax.jit(lambda x: jax.pure_callback(lambda y: tuple(qrtool.qr(np.asarray(y))), shapes,
                                               x))(a)
    yield bool(jax.numpy.allclose(q @ r, a))
    q, r, p = qrtool.qr(a, pivoting=True)
    yield bool(jax.numpy.allclose(a[:, p], q @ r)) and qrtool.verify(a, q, r, p=p)
    yield qrtool.qr(jax.numpy.zeros((0, 3, 2))).R.shape == (0, 2, 2)


MANNERS = {"torch": torch_manners, "jax": jax_manners}


def free_bytes():
    """Of the device, by CUDA's driver."""
    import ctypes
    driver, context = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p()
    free, total = ctypes.c_size_t(), ctypes.c_size_t()
    driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
    driver.cuCtxPushCurrent_v2(context)
    driver.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
    driver.cuCtxPopCurrent_v2(ctypes.byref(context))
    return free.value


def growth(calls, count, end):
    """Bytes that are less free after the calls than after a tenth of them, when all was used; and
    how many calls there were."""
    chance = np.random.default_rng(5)
    arrays = [(name, kind.array(numbers(chance, shape, np.float32)))
              for name, kind in calls.kinds.items() for shape in ((64, 64), (20, 48, 16))]
    begin, number = free_bytes(), 0
    while number < count and time.monotonic() < end:
        if number == count // 10:
            gc.collect()
            begin = free_bytes()
        _, array = arrays[number % len(arrays)]
        calls.qrtool.qr(array, check=("full", "none")[number // len(arrays) % 2])
        number += 1
    gc.collect()
    return begin - free_bytes(), number


def in_threads(calls, numbers_of_calls, count, end):
    """{kind: calls}, {kind: wrong ones}"""
    done, wrong, lock = collections.Counter(), collections.Counter(), threading.Lock()
    rest = iter(numbers_of_calls)

    def work():
        while True:
            with lock:
                number = next(rest, None)
            if number is None or time.monotonic() > end:
                return
            name, is_right = calls.run(number)
            with lock:
                done[name] += 1
                wrong[name] += not is_right

    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return done, wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library")
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int)
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--shapes", type=int, default=5, help="how many of the list")
    parser.add_argument("--share", default="1/1", metavar="I/N", help="of these shapes")
    parser.add_argument("--budget", type=float, default=float("inf"))
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--opencl", help="a device of OpenCL, whose bits must be the same")
    parser.add_argument("--growth", type=int, default=0)
    args = parser.parse_args()
    os.environ["QRTOOL_LIBRARY"] = os.path.abspath(args.library)
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "app/python"))
    import qrtool

    kinds, parts = {}, []
    for name in args.kinds.split(","):
        try:
            kinds[name] = KINDS[name]()
        except (ImportError, RuntimeError) as trouble:
            parts.append(f"{name} left out ({trouble})")
    begun, calls = time.monotonic(), Calls(qrtool, kinds, args)
    end, lost = begun + args.budget, 0
    warnings.simplefilter("ignore")  # such as PyTorch's of a graph that is empty
    for name in set(kinds) & set(MANNERS):
        for number, is_right in enumerate(MANNERS[name](qrtool, sys.modules[name])):
            if not is_right:
                lost += 1
                say(f"{name}: manner {number} is wrong")
    begun_calls = time.monotonic()
    chosen = range(args.calls) if args.only is None else [args.only]
    done, wrong = in_threads(calls, chosen, args.threads, end)
    seconds = time.monotonic() - begun_calls
    parts = [f"{name} {done[name]}" + f", {wrong[name]} wrong" * bool(wrong[name])
             for name in kinds] + parts
    if args.growth:
        more, count = growth(calls, args.growth, end)
        parts.append(f"{more} bytes more in use after {count} calls")
    print(f"{done.total()} calls of {len(chosen)} in {seconds:.0f} s: {'; '.join(parts)}; "
          f"{wrong.total()} wrong, and {lost} manners; {time.monotonic() - begun:.0f} s in all")
    sys.exit(bool(lost or wrong.total()))


if __name__ == "__main__":
    main()
