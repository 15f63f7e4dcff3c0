#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Batched QR on one GPU: qrtool (OpenCL, data resident, device clock) beside PyTorch (linalg.qr and
geqrf, CUDA events) and JAX (jitted linalg.qr, host clock), in one run, against the floor of bytes
and operations. Needs neither PyTorch nor JAX: what is missing is left out.

    gpu_peers.py QRTOOL [--device NAME] [--cases 64x64x15000,..] [--precision double]
                        [--repeats 20] [--json FILE, for every time]"""
import argparse
import json
import os
import statistics
import subprocess
import tempfile
import time

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
CASES = ("16x16x15000,32x32x15000,64x64x15000,128x64x15000,256x128x5000,512x256x1000,512x512x32,"
         "512x512x1,1024x512x32,1000000x32x1,4000000x64x1,1000000x128x1")
# Of an H200: copies, and products as cuBLAS does them.
BYTES_PER_MS, OPERATIONS_PER_MS = 4.27e9, 51e9


def all_ms(run_once, repeats, seconds):
    """run_once() -> ms. One warm-up of its own before."""
    run_once()
    times, begun = [], time.monotonic()
    while len(times) < repeats and (len(times) < 3 or time.monotonic() - begun < seconds):
        times.append(run_once())
    return times


def floor_ms(m, n, batch, with_q, entry_bytes):
    k = min(m, n)
    r_operations = 2 * m * n * k - 2 * k**3 / 3
    numbers = m * n + k * n + (m * k if with_q else 0)
    return max(entry_bytes * batch * numbers / BYTES_PER_MS,
               batch * r_operations * (2 if with_q else 1) / OPERATIONS_PER_MS)


def qrtool_ms(args, m, n, batch, mode):
    """All timed runs of as many processes as it takes for `repeats` of them."""
    times = []
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "bench.json")
        while len(times) < args.repeats:
            subprocess.run([args.qrtool, "bench", "--shape", f"{m}x{n}", "--batch", str(batch),
                            "--mode", mode,
                            "--device", args.device, "--against", "none", "--limit-seconds", "600",
                            "--precision", args.precision,
                            "--export-json", path],
                           check=True, capture_output=True)
            with open(path) as file:
                times += json.load(file)["cases"][0]["seconds"]["all"]
            os.remove(path)
    return [1e3 * seconds for seconds in times]


def torch_times(m, n, batch, args):
    try:
        import torch
    except ImportError:
        return None, None
    a = torch.randn(batch, m, n, device="cuda",
                    dtype=torch.float64 if args.precision == "double" else torch.float32)

    def timed(call):
        def once():
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            call()
            end.record()
            end.synchronize()
            return begin.elapsed_time(end)
        return all_ms(once, args.repeats, args.seconds)

    return (timed(lambda: torch.linalg.qr(a)),
            min(timed(lambda: torch.linalg.qr(a, mode="r")), timed(lambda: torch.geqrf(a)),
                key=statistics.median))


def jax_times(m, n, batch, args):
    try:
        import jax
    except ImportError:
        return None, None
    jax.config.update("jax_enable_x64", True)
    a = jax.random.normal(jax.random.key(0), (batch, m, n),
                          dtype="float64" if args.precision == "double" else "float32")

    def timed(call):
        def once():
            begin = time.perf_counter()
            jax.block_until_ready(call(a))
            return 1e3 * (time.perf_counter() - begin)
        return all_ms(once, args.repeats, args.seconds)

    return (timed(jax.jit(lambda x: jax.numpy.linalg.qr(x))),
            timed(jax.jit(lambda x: jax.numpy.linalg.qr(x, mode="r"))))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("qrtool")
    parser.add_argument("--device", default="nvidia")
    parser.add_argument("--cases", default=CASES)
    parser.add_argument("--precision", choices=("single", "double"), default="single")
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=4,
                        help="per case and peer; at least 3 repeats")
    parser.add_argument("--json", help="a file for every time")
    args = parser.parse_args()
    cases = []
    print("| case | | floor ms | qrtool ms | PyTorch ms | JAX ms | better peer / qrtool | qrtool / "
          "floor |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |", flush=True)
    for case in args.cases.split(","):
        m, n, batch = (int(x) for x in case.split("x"))
        peers = list(zip(torch_times(m, n, batch, args), jax_times(m, n, batch, args)))
        for mode, times in zip(("reduced", "r"), peers):
            all_times = dict(zip(("qrtool", "PyTorch", "JAX"),
                                 (qrtool_ms(args, m, n, batch, mode), *times)))
            cases.append({"m": m, "n": n, "batch": batch, "precision": args.precision, "mode": mode,
                          "seconds": {name: [1e-3 * x for x in values]
                                      for name, values in all_times.items() if values}})
            own = statistics.median(all_times["qrtool"])
            times = [statistics.median(x) if x else None for x in times]
            known = [x for x in times if x is not None]
            floor = floor_ms(m, n, batch, mode == "reduced", 8 if args.precision == "double" else 4)
            shown = ["--" if x is None else f"{x:.3g}" for x in times]
            ratio = f"{min(known) / own:.3g}" if known else "--"
            print(f"| {m}x{n} x {batch} | {'QR' if mode == 'reduced' else 'R'} | {floor:.3g} | "
                  f"{own:.3g} | "
                  f"{shown[0]} | {shown[1]} | {ratio} | {own / floor:.2g} |", flush=True)
    if args.json:
        with open(args.json, "w") as file:
            json.dump({"schema": "qrtool.gpu-peers/1", "cases": cases}, file)


if __name__ == "__main__":
    main()
