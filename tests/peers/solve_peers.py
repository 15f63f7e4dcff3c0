#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Least squares: qrtool beside PyTorch (torch.linalg.lstsq, and plain normal equations with
torch.linalg.cholesky), JAX (jitted jax.numpy.linalg.lstsq) and NumPy's lstsq.

    solve_peers.py QRTOOL [--device NAME|cpu] [--cases 288x97x1000,..] [--shared]
                          [--precision double] [--peers torch,normal,jax,numpy]

qrtool is `bench --solve`: data resident on the device, times by its clock, x without the check and
the check; or on the CPU, where its time contains the check. PyTorch and JAX run on a GPU where
--device is not cpu and they have one; nobody but qrtool checks x. torch.linalg.lstsq on a GPU
(gels) assumes full rank; JAX and NumPy use singular values; normal equations in the precision of
the data lose twice as many digits as the others. NumPy takes one system at a time, in a loop. A
peer that would take longer than --seconds for a case solves as many of its systems as it can and is
multiplied up; the table says how many. Of one A with many right sides (--shared), a case is
MxNxSIDES. PyTorch and JAX are left out where they are missing."""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

import numpy as np  # noqa: E402


def qrtool_ms(args, m, n, batch):
    """x, the check (0 where it is in x), and the variant."""
    command = [args.qrtool, "bench", "--solve", "--shape", f"{m}x{n}", "--batch", str(batch),
               "--precision",
               args.precision, "--against", "none", "--limit-seconds", "600", "--json"]
    command += ["--shared"] if args.shared else []
    command += ["--backend", "cpu"] if args.device == "cpu" else ["--device", args.device]
    result = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    case = result["cases"][0]
    if case["seconds"] is None:
        raise SystemExit("qrtool: " + "; ".join(result["notes"]))
    return 1e3 * case["seconds"]["median"], 1e3 * (case["check_seconds"] or 0), case["variant"]


def measured(prepare, batch, args):
    """Milliseconds for `batch` systems, and how many were timed. prepare(count) returns what solves
    so many and waits; a first call of it is not timed."""
    def timed(call):
        begun = time.perf_counter()
        call()
        return time.perf_counter() - begun

    def warmed_up(count):
        call = prepare(count)
        call()
        return call

    count = min(batch, args.least)
    call = warmed_up(count)
    times = [timed(call)]
    while count < batch and 8 * times[0] < args.seconds:
        more = min(batch, 4 * count)
        try:
            call = warmed_up(more)
            times = [timed(call)]
        except RuntimeError as error:  # no memory for so many
            print(f"stopped at {count}: {str(error).splitlines()[0]}", file=sys.stderr)
            break
        count = more
    while len(times) < args.repeats and sum(times) + times[0] < args.seconds:
        times.append(timed(call))
    return 1e3 * statistics.median(times) * batch / count, count


def systems(m, n, batch, args):
    """Some different systems, which the peers repeat: A, and right sides in rows."""
    random = np.random.default_rng(1)
    dtype = np.float64 if args.precision == "double" else np.float32
    some = 1 if args.shared else max(1, min(batch, 2**24 // (m * n)))
    sides = min(batch, max(1, 2**24 // m))
    a, b = random.standard_normal((some, m, n)), random.standard_normal((sides, m))
    return a.astype(dtype), b.astype(dtype)


def numpy_ms(m, n, batch, args):
    a, b = systems(m, n, batch, args)

    def prepare(count):
        if args.shared:
            parts = [b[:count - first].T for first in range(0, count, len(b))]
            return lambda: [np.linalg.lstsq(a[0], part, rcond=None) for part in parts]
        return lambda: [np.linalg.lstsq(a[i % len(a)], b[i % len(b)], rcond=None)
                        for i in range(count)]

    return measured(prepare, batch, args)


def torch_times(m, n, batch, args, solve):
    """solve(torch, matrices, right) for A (or one A) and right sides as columns."""
    try:
        import torch
    except ImportError:
        return None
    on_gpu = args.device != "cpu" and torch.cuda.is_available()
    device = "cuda" if on_gpu else "cpu"
    a, b = (torch.from_numpy(x).to(device) for x in systems(m, n, batch, args))

    def prepare(count):
        def repeated(x):
            return x.repeat(-(-count // len(x)), *[1] * (x.ndim - 1))[:count]

        matrices = a[0] if args.shared else repeated(a)
        right = repeated(b).T if args.shared else repeated(b)[..., None]

        def call():
            solve(torch, matrices, right)
            if on_gpu:
                torch.cuda.synchronize()

        return call

    try:
        return measured(prepare, batch, args)
    finally:
        if on_gpu:
            torch.cuda.empty_cache()


def torch_ms(m, n, batch, args):
    return torch_times(m, n, batch, args, lambda torch, a,
                       b: torch.linalg.lstsq(a, b, driver="gels"))


def normal_ms(m, n, batch, args):
    def solve(torch, a, b):
        factor = torch.linalg.cholesky_ex(a.mT @ a)[0]
        torch.cholesky_solve(a.mT @ b, factor)

    return torch_times(m, n, batch, args, solve)


def jax_ms(m, n, batch, args):
    try:
        import jax
    except ImportError:
        return None
    jax.config.update("jax_enable_x64", True)
    device = jax.devices("cpu")[0] if args.device == "cpu" else jax.devices()[0]
    a, b = (jax.device_put(x, device) for x in systems(m, n, batch, args))
    one = lambda matrix, right: jax.numpy.linalg.lstsq(matrix, right)[0]  # noqa: E731
    each, shared = jax.jit(jax.vmap(one)), jax.jit(one)

    def prepare(count):
        right = jax.numpy.resize(b, (count, m))
        if args.shared:
            return lambda: jax.block_until_ready(shared(a[0], right.T))
        matrices = jax.numpy.resize(a, (count, m, n))
        return lambda: jax.block_until_ready(each(matrices, right))

    return measured(prepare, batch, args)


def cell(time_and_count, batch):
    if time_and_count is None:
        return "--"
    ms, count = time_and_count
    return f"{ms:.3g}" + ("" if count == batch else f" (of {count:,})")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("qrtool")
    parser.add_argument("--device", default="nvidia", help="as for qrtool, or cpu")
    parser.add_argument("--cases")
    parser.add_argument("--shared", action="store_true", help="one A for all right sides")
    parser.add_argument("--precision", choices=("single", "double"), default="double")
    parser.add_argument("--peers", default="torch,normal,jax,numpy")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=60, help="of a peer for each case")
    parser.add_argument("--least", type=int, default=16,
                        help="systems that a peer solves in any case")
    args = parser.parse_args()
    cases = args.cases or ("120x4x1000000" if args.shared
                           else "16x4x100000,64x64x15000,288x97x10000,1000000x32x1")
    known = {"torch": ("PyTorch", torch_ms), "normal": ("normal equations", normal_ms),
             "jax": ("JAX", jax_ms),
             "numpy": ("NumPy loop", numpy_ms)}
    chosen = [known[name] for name in args.peers.split(",")]
    print("| case | qrtool | variant | x ms | check ms |" +
          "".join(f" {name} ms |" for name, _ in chosen) +
          " best peer / x |")
    print("| --- " * (6 + len(chosen)) + "|", flush=True)
    for case in cases.split(","):
        m, n, batch = (int(x) for x in case.split("x"))
        x, check, variant = qrtool_ms(args, m, n, batch)
        print(f"| {m}x{n} x {batch} | {args.precision} | {variant} | {x:.3g} | "
              f"{f'{check:.3g}' if check else 'in x'} |",
              end="", flush=True)
        peers = []
        for _, peer in chosen:
            peers.append(peer(m, n, batch, args))
            print(f" {cell(peers[-1], batch)} |", end="", flush=True)
        best = min((ms for ms, _ in filter(None, peers)), default=float("nan"))
        print(f" {best / x:.3g} |", flush=True)


if __name__ == "__main__":
    main()
