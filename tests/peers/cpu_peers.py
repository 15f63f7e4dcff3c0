#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The CPU path against Eigen, LAPACK, NumPy and SciPy, in turn, as a Markdown table.

    cpu_peers.py QRTOOL [--rounds N] [--threads N] [--seconds X] [--shapes MxN,...] [--modes reduced,r]

A round times every contestant once on each case, one after the other, so that whatever else the machine does
falls on all of them; a ratio is taken within a round, and the table has medians over the rounds. `eigen` and
`lapack` are those of `qrtool bench` (put OpenBLAS into LD_LIBRARY_PATH); NumPy and SciPy (both with their own
OpenBLAS) run in this process, a share of the batch on each thread. Needs numpy and scipy; no test.
"""
import argparse
import concurrent.futures
import json
import os
import statistics
import subprocess
import time

os.environ["OPENBLAS_NUM_THREADS"] = "1"  # one matrix per thread, as in the tool

import numpy as np  # noqa: E402
import scipy.linalg.lapack as lapack  # noqa: E402


def tool_and_baselines(args, case, precision, mode, batch):
    m, n = case
    command = [args.qrtool, "bench", "--shape", f"{m}x{n}", "--batch", str(batch), "--precision", precision,
               "--mode", mode, "--backend", "cpu", "--threads", str(args.threads), "--against", "eigen,lapack",
               "--json"]
    row = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["cases"][0]
    times = {"qrtool": row["seconds"]["median"]}
    times.update({name: cell["seconds"]["median"] for name, cell in row["baselines"].items() if cell})
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
        for name, seconds in times.items():
            rounds.setdefault(name, []).append(seconds)
    return batch, variant, rounds


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("qrtool")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--seconds", type=float, default=1.0, help="of the slowest contestant, roughly")
    parser.add_argument("--shapes", default="8x8,16x16,32x32,64x64,128x64,256x128,512x256,512x512,1024x512,2048x2048")
    parser.add_argument("--modes", default="reduced,r")
    parser.add_argument("--precisions", default="single,double")
    args = parser.parse_args()
    peers = ["eigen", "lapack", "numpy", "scipy"]
    print("| case | type | mode | batch | variant | qrtool us | " + " | ".join(f"{p} us" for p in peers) +
          " | best peer / qrtool |")
    print("|" + " --- |" * (7 + len(peers)))
    for precision in args.precisions.split(","):
        for mode in args.modes.split(","):
            for shape in args.shapes.split(","):
                case = tuple(int(x) for x in shape.split("x"))
                batch, variant, rounds = measure(args, case, precision, mode)
                there = [p for p in peers if p in rounds]
                ratio = min(statistics.median(a / b for a, b in zip(rounds[p], rounds["qrtool"])) for p in there)
                us = {name: 1e6 * statistics.median(times) / batch for name, times in rounds.items()}
                cells = [f"{us[p]:.4g}" if p in us else "--" for p in ["qrtool"] + peers]
                print(f"| {shape} | {precision} | {mode} | {batch:,} | {variant} | " + " | ".join(cells) +
                      f" | {ratio:.2f} |", flush=True)


if __name__ == "__main__":
    main()
