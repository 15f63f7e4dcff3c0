# SPDX-License-Identifier: Apache-2.0
"""Peers of gpu_peers.py that CuPy calls: kernels of cuSolverDx that dx_kernels.py made, and
geqrfBatched of cuBLAS. Each is timed on the device's clock, and its results are checked first."""
import ctypes
import json
import lzma
import os
import pathlib
import statistics
import sys
import tempfile

TYPES = {"single": "float32", "double": "float64", "complex64": "complex64",
         "complex128": "complex128"}
LETTERS = {"single": "S", "double": "D", "complex64": "C", "complex128": "Z"}  # of LAPACK's names
CHECKED = 64  # matrices, from the whole batch
BARS = {"single": 1e-4, "double": 1e-12, "complex64": 1e-4, "complex128": 1e-12}  # relative


def cupy_or_none():
    try:
        import cupy
        return cupy
    except ImportError:
        return None


def random_matrices(cp, shape, precision):
    wanted = cp.dtype(TYPES[precision])
    if wanted.kind == "f":
        return cp.random.default_rng(1).standard_normal(shape, dtype=wanted)
    parts = random_matrices(cp, (*shape, 2), "single" if wanted.itemsize == 8 else "double")
    return parts.view(wanted)[..., 0]


def device_ms(cp, call):
    begin, end = cp.cuda.Event(), cp.cuda.Event()
    begin.record()
    call()
    end.record()
    end.synchronize()
    return cp.cuda.get_elapsed_time(begin, end)


def worst(cp, difference, scale):
    """The largest norm of the matrices of `difference`, divided by those of `scale`."""
    def norms(matrices):
        return cp.sqrt((abs(matrices) ** 2).sum(axis=(1, 2)))
    error = float((norms(difference) / norms(scale)).max())
    return error if error == error else float("inf")


def transposed(matrices):
    return matrices.transpose(0, 2, 1)


def wide(cp, matrices):
    """In float64 or complex128."""
    return matrices.astype(cp.promote_types(matrices.dtype, "float64"))


class DxRun:
    """One kernel on one batch of matrices, by chance unless they are given."""

    def __init__(self, cp, path, batch, a=None):
        self.cp, self.batch = cp, batch
        self.record = record = json.loads(path.read_text(encoding="utf-8"))
        self.m, self.n, precision = record["m"], record["n"], record["precision"]
        with tempfile.TemporaryDirectory() as folder:
            cubin = os.path.join(folder, "kernel.cubin")
            pathlib.Path(cubin).write_bytes(lzma.open(path.with_suffix(".cubin.xz")).read())
            self.module = cp.RawModule(path=cubin)
            self.kernel = self.module.get_function("run")
        self.kernel.max_dynamic_shared_size_bytes = record["shared_bytes"]
        self.a = random_matrices(cp, (batch, self.m, self.n), precision) if a is None else a
        self.q = cp.zeros_like(self.a) if record["work"] == "qr" else self.a[:1].copy()
        self.r = cp.zeros((batch, self.n, self.n), self.a.dtype)
        self.right = random_matrices(cp, (batch, self.m, max(1, record["sides"])), precision)
        self.b = self.right.copy()

    def about(self):
        return (f"{self.record['threads']} threads, {self.record['per_block']} in a block, rows "
                f"padded by {self.record['padding']}")

    def call(self):
        self.kernel((-(-self.batch // self.record["per_block"]),), (self.record["threads"],),
                    (self.a, self.q, self.r, self.b, self.cp.int32(self.batch)),
                    shared_mem=self.record["shared_bytes"])

    def once(self):
        if self.record["work"] == "gels":  # x lies where b was
            self.b[...] = self.right
        return device_ms(self.cp, self.call)

    def error(self):
        """Of R'R = A'A, of Q'Q = I and QR = A, or of the normal equations, relative."""
        self.once()
        some = slice(None, None, max(1, self.batch // CHECKED))
        a, q, r, b, x = (matrices[some].astype("float64") for matrices in (
            self.a, self.q, self.r, self.right, self.b))
        if self.record["work"] == "gels":
            x = x[:, :self.n]
            size = self.cp.sqrt((x * x).sum(axis=(1, 2), keepdims=True))
            return worst(self.cp, transposed(a) @ (b - a @ x), transposed(a) @ a * size)
        errors = [worst(self.cp, transposed(r) @ r - transposed(a) @ a, transposed(a) @ a)]
        if self.record["work"] == "qr":
            one = self.cp.eye(self.n, dtype="float64")[None]
            errors += [worst(self.cp, transposed(q) @ q - one, one), worst(self.cp, q @ r - a, a)]
        return max(errors)


def dx_times(folder, work, case, precision, all_ms):
    """{name: ms} of the fastest kernel that fits; empty where there is none. case: m, n, batch;
    all_ms(once): the times of many runs."""
    cp, (m, n, batch), best = cupy_or_none(), case, {}
    if not cp or not folder:
        return best
    for path in sorted(pathlib.Path(folder).glob(f"{work}-{m}x{n}-{precision}-*.json")):
        run = DxRun(cp, path, batch)
        error = run.error()
        if error > BARS[precision]:
            print(f"{path.name}: left out, as its error is {error:.2g}", file=sys.stderr)
            continue
        times = all_ms(run.once)
        if not best or statistics.median(times) < statistics.median(next(iter(best.values()))):
            best = {f"{run.record['version']}, {run.about()}": times}
    return best


def loaded_library(name):
    """The library of this process whose file begins so, as ctypes calls it; None: not loaded."""
    paths = [line.split()[-1] for line in pathlib.Path("/proc/self/maps").read_text().splitlines()
             if f"/{name}.so" in line]
    return ctypes.CDLL(paths[0]) if paths else None


def library_versions():
    """Of the NVIDIA libraries that this process has called, as they say themselves."""
    versions, number = {}, ctypes.c_int()
    solver, blas = loaded_library("libcusolver"), loaded_library("libcublas")
    if solver and solver.cusolverGetVersion(ctypes.byref(number)) == 0:
        versions["cuSOLVER"] = (f"{number.value // 1000}.{number.value // 100 % 10}."
                                f"{number.value % 100}")
    if blas:
        versions["cuBLAS"] = ".".join(map(str, blas_version(blas)))
    return versions


def blas_version(blas):
    """Major, minor and patch: cublasGetProperty needs no handle."""
    numbers = []
    for kind in range(3):
        number = ctypes.c_int()
        blas.cublasGetProperty(kind, ctypes.byref(number))
        numbers.append(number.value)
    return numbers


def blas_times(case, precision, all_ms):
    """{name: ms} of geqrfBatched, which gives R and the reflectors."""
    cp, (m, n, batch) = cupy_or_none(), case
    if not cp:
        return {}
    cp.cuda.device.get_cublas_handle()  # loads the library
    blas, handle = loaded_library("libcublas"), ctypes.c_void_p()
    # A handle of its own: PyTorch, JAX and CuPy may each have loaded another copy.
    if not blas or blas.cublasCreate_v2(ctypes.byref(handle)):
        print("cuBLAS: cannot be called, and is left out", file=sys.stderr)
        return {}
    geqrf = getattr(blas, f"cublas{LETTERS[precision]}geqrfBatched")
    original = random_matrices(cp, (batch, n, m), precision)  # of columns
    a, tau = original.copy(), cp.zeros((batch, min(m, n)), TYPES[precision])

    def pointers(matrices):
        first, step = matrices.data.ptr, matrices.nbytes // batch
        return cp.arange(first, first + batch * step, step, dtype="uint64")

    of_a, of_tau, info = pointers(a), pointers(tau), ctypes.c_int()

    def call():
        code = geqrf(handle, m, n, ctypes.c_void_p(of_a.data.ptr), m,
                     ctypes.c_void_p(of_tau.data.ptr), ctypes.byref(info), batch)
        if code or info.value:
            raise RuntimeError(f"geqrfBatched: status {code}, info {info.value}")

    def once():
        a[...] = original
        return device_ms(cp, call)

    once()
    some = slice(None, None, max(1, batch // CHECKED))
    before, r = (transposed(wide(cp, matrices[some])) for matrices in (original, a))
    r = cp.triu(r[:, :min(m, n)])
    gram = transposed(before).conj() @ before
    error = worst(cp, transposed(r).conj() @ r - gram, gram)
    if error > BARS[precision]:
        raise RuntimeError(f"geqrfBatched: its error is {error:.2g}")
    version = ".".join(map(str, blas_version(blas)))
    times = all_ms(once)
    blas.cublasDestroy_v2(handle)
    return {f"cuBLAS {version} geqrfBatched": times}
