#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The CPU path against what the user of a script gets from NumPy, SciPy and MKL, as a Markdown
table.

    cpu_peers.py QRTOOL [--rounds N] [--threads N] [--seconds X] [--shapes MxN,...]
                        [--modes reduced,r]

A round times every contestant once on each case, one after the other, so that whatever else the
machine does falls on all of them; a ratio is taken within a round, and the table has medians over
the rounds. `eigen` and `lapack` are those of `qrtool bench` (put OpenBLAS into LD_LIBRARY_PATH),
which are called from C++. The columns "script" hold the cost of Python: NumPy and SciPy (both with
their own OpenBLAS) run in this process, a share of the batch on each thread, and so does MKL where
its package is (pip install mkl). cpu_peers.cpp beside this file calls the same libraries from C++.
Needs numpy and scipy; no test.
"""
import argparse
import concurrent.futures
import ctypes
import glob
import json
import os
import statistics
import subprocess
import sys
import time

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # one matrix per thread, as in the tool
os.environ["MKL_THREADING_LAYER"] = "SEQUENTIAL"

import numpy as np  # noqa: E402
import scipy.linalg.lapack as lapack  # noqa: E402


def tool_and_baselines(args, case, precision, mode, batch):
    m, n = case
    command = [args.qrtool, "bench", "--shape", f"{m}x{n}", "--batch", str(batch), "--precision",
               precision,
               "--mode", mode, "--backend", "cpu", "--threads", str(args.threads), "--against",
               "eigen,lapack",
               "--json"]
    row = json.loads(subprocess.run(command, check=True, capture_output=True,
                                    text=True).stdout)["cases"][0]
    times = {"qrtool": row["seconds"]["median"]}
    times.update({name: cell["seconds"]["median"] for name,
                  cell in row["baselines"].items() if cell})
    return row["variant"], times


def numpy_qr(matrices, mode):
    np.linalg.qr(matrices, mode)


def scipy_qr(matrices, mode):
    geqrf, orgqr = lapack.get_lapack_funcs(("geqrf", "orgqr"), dtype=matrices.dtype)
    k = min(matrices.shape[1:])
    for a in matrices:
        v, tau, _, _ = geqrf(a)
        np.triu(v[:k])
        if mode == "reduced":
            orgqr(v[:, :k], tau)


def load_mkl():
    files = glob.glob(os.path.join(sys.prefix, "lib", "libmkl_rt.so*"))
    return ctypes.CDLL(files[0]) if files else None


MKL = load_mkl()


class MklQr:
    """geqrf and orgqr of MKL for one shape and type, on one thread."""

    def __init__(self, dtype, m, n):
        letter = "s" if dtype == np.float32 else "d"
        self.geqrf, self.orgqr = getattr(MKL, letter + "geqrf_"), getattr(MKL, letter + "orgqr_")
        self.m, self.n, self.k = ctypes.c_int(m), ctypes.c_int(n), ctypes.c_int(min(m, n))
        self.info = ctypes.c_int()
        self.size = ctypes.c_int(64 * max(m, n))
        self.work, self.tau = np.empty(self.size.value, dtype), np.empty(min(m, n), dtype)

    def run(self, a, mode):
        ref, at = ctypes.byref, lambda x: ctypes.c_void_p(x.ctypes.data)
        v = np.asfortranarray(a)
        self.geqrf(ref(self.m), ref(self.n), at(v), ref(self.m), at(self.tau), at(self.work),
                   ref(self.size),
                   ref(self.info))
        np.triu(v[:self.k.value])
        if mode == "reduced":
            self.orgqr(ref(self.m), ref(self.k), ref(self.k), at(v), ref(self.m), at(self.tau),
                       at(self.work),
                       ref(self.size), ref(self.info))


def mkl_qr(matrices, mode):
    qr = MklQr(matrices.dtype, *matrices.shape[1:])
    for a in matrices:
        qr.run(a, mode)


def timed(function, a, mode, threads):
    parts = np.array_split(a, threads)
    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        start = time.perf_counter()
        list(pool.map(lambda part: function(part, mode), parts))
        return time.perf_counter() - start


def measure(args, case, precision, mode):
    """Seconds by contestant, a list over rounds, and the variant that ran."""
    m, n = case
    guess = 3e-6 + 4.0 * max(m, n) * min(m, n) ** 2 / 5e9  # of a peer, one matrix on one thread
    batch = max(1, int(args.seconds * args.threads / guess))
    dtype = np.float32 if precision == "single" else np.float64
    a = np.random.default_rng(1).standard_normal((batch, m, n)).astype(dtype)
    rounds = {}
    for _ in range(args.rounds):
        variant, times = tool_and_baselines(args, case, precision, mode, batch)
        times["numpy"] = timed(numpy_qr, a, mode, args.threads)
        times["scipy"] = timed(scipy_qr, a, mode, args.threads)
        if MKL:
            times["mkl"] = timed(mkl_qr, a, mode, args.threads)
        for name, seconds in times.items():
            rounds.setdefault(name, []).append(seconds)
    return batch, variant, rounds


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("qrtool")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--seconds", type=float, default=1.0,
                        help="of the slowest contestant, roughly")
    parser.add_argument("--shapes", default="8x8,16x16,32x32,64x64,128x64,256x128,512x256,"
                        "512x512,1024x512,2048x2048")
    parser.add_argument("--modes", default="reduced,r")
    parser.add_argument("--precisions", default="single,double")
    args = parser.parse_args()
    peers = ["eigen", "lapack", "numpy", "scipy", "mkl"]
    script = {"numpy", "scipy", "mkl"}
    print("| case | type | mode | batch | variant | qrtool us | " +
          " | ".join(f"{p}, {'script' if p in script else 'C++'} us" for p in peers) +
          " | best peer / qrtool |")
    print("|" + " --- |" * (7 + len(peers)))
    for precision in args.precisions.split(","):
        for mode in args.modes.split(","):
            for shape in args.shapes.split(","):
                case = tuple(int(x) for x in shape.split("x"))
                batch, variant, rounds = measure(args, case, precision, mode)
                there = [p for p in peers if p in rounds]
                ratio = min(statistics.median(a / b for a, b in zip(rounds[p], rounds["qrtool"]))
                            for p in there)
                us = {name: 1e6 * statistics.median(times) / batch for name,
                      times in rounds.items()}
                cells = [f"{us[p]:.4g}" if p in us else "--" for p in ["qrtool"] + peers]
                print(f"| {shape} | {precision} | {mode} | {batch:,} | {variant} | " +
                      " | ".join(cells) +
                      f" | {ratio:.2f} |", flush=True)


if __name__ == "__main__":
    main()
