#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Batched QR on one GPU: qrtool (OpenCL, data resident, device clock) beside PyTorch (linalg.qr and
geqrf + orgqr, CUDA events), JAX (jitted linalg.qr, host clock), geqrfBatched of cuBLAS and kernels
of cuSolverDx (both through CuPy), in one run, against the floor of bytes and operations. What is
missing is left out. --solve: least squares of one right side each, beside gels of cuSolverDx.
--complex: complex matrices, for which there are no kernels of cuSolverDx.

    gpu_peers.py QRTOOL [--device NAME] [--cases 64x64x15000,..] [--precision double]
                        [--solve | --complex] [--dx FOLDER of dx_kernels.py] [--repeats 20]
                        [--json FILE, for every time]
"""
import argparse
import json
import os
import statistics
import subprocess
import tempfile
import time

import cupy_peers
from cupy_peers import TYPES

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
CASES = ("16x16x15000,32x32x15000,64x64x15000,128x64x15000,256x128x5000,512x256x1000,512x512x32,"
         "512x512x1,1024x512x32,1000000x32x1,4000000x64x1,1000000x128x1")
# Of an H200: copies, and products as cuBLAS does them.
BYTES_PER_MS, OPERATIONS_PER_MS = 4.27e9, 51e9
# Bytes of an entry, and real operations in one of its type.
COSTS = {"single": (4, 1), "double": (8, 1), "complex64": (8, 4), "complex128": (16, 4)}


def all_ms(run_once, repeats, seconds):
    """run_once() -> ms. One warm-up of its own before; one time alone where that takes so long."""
    run_once()
    times, begun = [], time.monotonic()
    while len(times) < repeats and (time.monotonic() - begun < seconds or
                                    len(times) < 3 and times[0] < 1e3 * seconds):
        times.append(run_once())
    return times


def floor_ms(m, n, batch, with_q, element):
    k, (entry_bytes, operations) = min(m, n), COSTS[element]
    r_operations = operations * (2 * m * n * k - 2 * k**3 / 3)
    numbers = m * n + k * n + (m * k if with_q else 0)
    return max(entry_bytes * batch * numbers / BYTES_PER_MS,
               batch * r_operations * (2 if with_q else 1) / OPERATIONS_PER_MS)


def qrtool_ms(args, case, *words):
    m, n, batch = case
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "bench.json")
        subprocess.run([args.qrtool, "bench", "--shape", f"{m}x{n}", "--batch", str(batch), *words,
                        "--device", args.device, "--against", "none", "--limit-seconds", "600",
                        "--runs", str(args.repeats), "--precision", args.precision,
                        *(["--complex"] if args.complex else []), "--export-json", path],
                       check=True, capture_output=True)
        with open(path) as file:
            return [1e3 * seconds for seconds in json.load(file)["cases"][0]["seconds"]["all"]]


def torch_calls(case, element):
    """{mode: {name: call}}, or nothing without PyTorch. A call returns before its work is done."""
    try:
        import torch
    except ImportError:
        return {}
    m, n, batch = case
    a = torch.randn(batch, m, n, device="cuda", dtype=getattr(torch, TYPES[element]))
    version = torch.__version__.split("+")[0]
    qr = f"PyTorch {version}"
    orgqr = "orgqr" if element in ("single", "double") else "ungqr"
    direct = f"geqrf + {orgqr} of PyTorch {version}"
    return {"reduced": {qr: lambda: torch.linalg.qr(a),
                        direct: lambda: torch.linalg.householder_product(*torch.geqrf(a))},
            "r": {qr: lambda: torch.linalg.qr(a, mode="r"), direct: lambda: torch.geqrf(a)}}


def torch_ms(call):
    import torch
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    call()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end)


def jax_calls(case, element):
    """{mode: {name: call}}, or nothing without JAX. A call returns when its work is done."""
    try:
        import jax
    except ImportError:
        return {}
    m, n, batch = case
    jax.config.update("jax_enable_x64", True)
    a = jax.random.normal(jax.random.key(0), (batch, m, n), dtype=TYPES[element])

    def call_of(mode):
        function = jax.jit(lambda x: jax.numpy.linalg.qr(x, mode=mode))
        return {f"JAX {jax.__version__}": lambda: jax.block_until_ready(function(a))}

    return {mode: call_of(mode) for mode in ("reduced", "r")}


def host_ms(call):
    begin = time.perf_counter()
    call()
    return 1e3 * (time.perf_counter() - begin)


def times_of(calls, clock, args):
    """{mode: {name: ms}}"""
    return {mode: {name: all_ms(lambda call=call: clock(call), args.repeats, args.seconds)
                   for name, call in named.items()} for mode, named in calls.items()}


def factor_cases(case, args):
    """(mode, {name: ms}), that of qrtool first."""
    def timed(once):
        return all_ms(once, args.repeats, args.seconds)

    torch = times_of(torch_calls(case, args.element), torch_ms, args)
    jax = times_of(jax_calls(case, args.element), host_ms, args)
    for mode, work in (("reduced", "qr"), ("r", "r")):
        yield mode, {"qrtool": qrtool_ms(args, case, "--mode", mode),
                     **torch.get(mode, {}), **jax.get(mode, {}),
                     **(cupy_peers.blas_times(case, args.element, timed)
                        if work == "r" and case[2] > 1 else {}),
                     **cupy_peers.dx_times(args.dx, work, case, args.element, timed)}


def solve_cases(case, args):
    gels = cupy_peers.dx_times(args.dx, "gels", case, args.element,
                               lambda once: all_ms(once, args.repeats, args.seconds))
    yield "solve", {"qrtool": qrtool_ms(args, case, "--solve"), **gels}


def line_of(case, mode, times, element):
    m, n, batch = case
    own, *peers = (statistics.median(values) for values in times.values())
    names = [name for name in times if name != "qrtool"]
    line = f"| {m}x{n} x {batch} | {mode} | {own:.3g} | "
    line += "; ".join(f"{name}: {ms:.3g}" for name, ms in zip(names, peers))
    ratio = f"{min(peers) / own:.3g}" if peers else "--"
    if mode == "solve":
        return f"{line} | {ratio} | -- |"
    floor = floor_ms(m, n, batch, mode == "reduced", element)
    return f"{line} | {ratio} | {own / floor:.2g} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("qrtool")
    parser.add_argument("--device", default="nvidia")
    parser.add_argument("--cases", default=CASES)
    parser.add_argument("--precision", choices=("single", "double"), default="single")
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=4,
                        help="per case and peer; at least 3 repeats, if one is shorter")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--solve", action="store_true")
    what.add_argument("--complex", action="store_true",
                      help="complex numbers, whose parts have the precision")
    parser.add_argument("--dx", help="a folder that dx_kernels.py has filled")
    parser.add_argument("--json", help="a file for every time")
    args = parser.parse_args()
    args.element = args.precision
    if args.complex:
        args.element = "complex64" if args.precision == "single" else "complex128"
    cases = []
    print("| case | | qrtool ms | peers ms | best peer / qrtool | qrtool / floor |\n"
          "| --- | --- | --- | --- | --- | --- |", flush=True)
    for text in args.cases.split(","):
        m, n, batch = case = tuple(int(x) for x in text.split("x"))
        for mode, times in (solve_cases if args.solve else factor_cases)(case, args):
            cases.append({"m": m, "n": n, "batch": batch, "precision": args.element, "mode": mode,
                          "seconds": {name: [1e-3 * x for x in values]
                                      for name, values in times.items()}})
            print(line_of(case, mode, times, args.element), flush=True)
    if args.json:
        with open(args.json, "w") as file:
            json.dump({"schema": "qrtool.gpu-peers/1",
                       "libraries": cupy_peers.library_versions(), "cases": cases}, file)


if __name__ == "__main__":
    main()
