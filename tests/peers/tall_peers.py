#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tall matrices: cpu/tall against Eigen, LAPACK and NumPy, in turn, as a Markdown table.

    tall_peers.py QRTOOL [--rounds N] [--threads N] [--shapes MxN,...] [--modes reduced,r]
                         [--precisions single,double]

A round times every contestant once on each case, one after the other; a ratio is taken within a
round, and the table has medians over the rounds. `eigen` is that of `qrtool bench` (one thread: it
has no more for one matrix); LAPACK is geqrf and orgqr of SciPy's OpenBLAS on a matrix that lies by
columns already, with a wide workspace; NumPy is numpy.linalg.qr; both with all threads. Needs numpy
and scipy; no test.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time


def tool(args, shape, precision, mode):
    command = [args.qrtool, "bench", "--shape", shape, "--precision", precision, "--mode", mode,
               "--backend", "cpu",
               "--threads", str(args.threads), "--against", "eigen", "--limit-seconds", "3",
               "--json"]
    row = json.loads(subprocess.run(command, check=True, capture_output=True,
                                    text=True).stdout)["cases"][0]
    return row["variant"], {"qrtool": row["seconds"]["fastest" if args.fastest else "median"],
                            "eigen": row["baselines"]["eigen"]["seconds"]["median"]}


def timed(function):
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def lapack_qr(lapack, a, mode):
    geqrf, orgqr = lapack.get_lapack_funcs(("geqrf", "orgqr"), dtype=a.dtype)
    work = 64 * a.shape[1]
    v, tau, _, _ = geqrf(a, lwork=work)
    if mode == "reduced":
        orgqr(v, tau, lwork=work, overwrite_a=1)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("qrtool")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--shapes", default="100000x16,1000000x32,1000000x64,300000x128")
    parser.add_argument("--modes", default="reduced,r")
    parser.add_argument("--precisions", default="single,double")
    parser.add_argument("--fastest", action="store_true",
                        help="of the tool's runs in a round, not their median")
    args = parser.parse_args()
    os.environ["OPENBLAS_NUM_THREADS"] = str(args.threads)
    import numpy as np  # noqa: E402: OpenBLAS reads the environment when it is loaded
    import scipy.linalg.lapack as lapack

    peers = ["eigen", "lapack", "numpy"]
    print("| case | type | mode | variant | qrtool ms | " + " | ".join(f"{p} ms" for p in peers) +
          " | best peer / qrtool |")
    print("|" + " --- |" * (6 + len(peers)))
    for precision in args.precisions.split(","):
        for mode in args.modes.split(","):
            for shape in args.shapes.split(","):
                m, n = (int(x) for x in shape.split("x"))
                dtype = np.float32 if precision == "single" else np.float64
                a = np.random.default_rng(1).standard_normal((m, n)).astype(dtype)
                columns = np.asfortranarray(a)
                rounds = {}
                for _ in range(args.rounds):
                    variant, times = tool(args, shape, precision, mode)
                    times["lapack"] = timed(lambda: lapack_qr(lapack, columns, mode))
                    times["numpy"] = timed(lambda: np.linalg.qr(a, mode))
                    for name, seconds in times.items():
                        rounds.setdefault(name, []).append(seconds)
                best = statistics.median(min(rounds[p][i] for p in peers) / rounds["qrtool"][i]
                                         for i in range(args.rounds))
                cells = [f"{1e3 * statistics.median(rounds[name]):.4g}" for name in ["qrtool"] +
                         peers]
                print(f"| {shape} | {precision} | {mode} | {variant} | " + " | ".join(cells) +
                      f" | {best:.2f} |",
                      flush=True)


if __name__ == "__main__":
    sys.exit(main())
