#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""qrtool.qr and qrtool.lstsq on arrays that are on the GPU already, beside torch.linalg.qr, jitted
jax.numpy.linalg.qr, and the kernels of qrtool alone (`qrtool bench`, data resident).

    device_speed.py LIBQRTOOL [--qrtool PROGRAM] [--precision single] [--complex] [--first]
                    [--cases 64x64x15000,..] [--systems 64x64x15000,..] [--repeats 30]
                    [--seconds 0.5] [--budget 110] [--json FILE]

LIBQRTOOL is libqrtool.so.1. Times are medians, warm, by CUDA's events on the stream of the caller:
what PyTorch and qrtool take from the caller's last command to his next one, on an idle stream and
"behind work", where commands before it keep the stream busy for a while, as in most programs. JAX
has streams of its own, so that the host's clock counts there. Each contestant has --seconds for the
calls of a case after a warm one, or one call that takes longer. When --budget is spent no further
case begins, which the last line says. --first: the first and the second call of fresh processes,
where all caches are empty, where those of qrtool and of the driver are full, and where only
qrtool's is full.
Needs PyTorch; no test.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
CASES = "64x64x15000,256x128x2000,150x110x2000,512x512x640,2048x2048x1,1000000x32x1,64x64x1"
SYSTEMS = "64x64x4000,288x97x2000,1000000x32x1"  # PyTorch takes 5 ms for each
FIRST_CASES = "64x64x15000,512x512x32"
PACKAGE = pathlib.Path(__file__).resolve().parents[2] / "app/python"
BUSY_CYCLES = 400_000  # some 0.2 ms
TYPES = {("single", False): "float32", ("double", False): "float64",
         ("single", True): "complex64", ("double", True): "complex128"}
FIRST = """
import sys, time, torch, qrtool
m, n, batch, dtype = *map(int, sys.argv[1:4]), getattr(torch, sys.argv[4])
a = torch.randn(batch, m, n, device="cuda", dtype=dtype)
times = []
for _ in range(2):
    torch.cuda.synchronize()
    begin = time.perf_counter()
    qrtool.qr(a)
    torch.cuda.synchronize()
    times.append(time.perf_counter() - begin)
print(*times)
"""


def all_seconds(once, args):
    """once() -> seconds, after one that warms up, which counts where it takes far too long."""
    times = [once()]
    if times[0] < 10 * args.seconds:
        times = [once()]
    while sum(times) < args.seconds and len(times) < args.repeats:
        times.append(once())
    return times


def on_stream(torch, call, cycles=0):
    """`cycles`: for which the stream is busy before."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))

    def once():
        if cycles:
            torch.cuda._sleep(cycles)
        begin.record()
        call()
        end.record()
        end.synchronize()
        return 1e-3 * begin.elapsed_time(end)
    return once


def on_host(call):
    def once():
        begin = time.perf_counter()
        call()
        return time.perf_counter() - begin
    return once


def jax_once(case, dtype):
    try:
        import jax
    except ImportError:
        return {}
    jax.config.update("jax_enable_x64", True)
    m, n, batch = case
    a = jax.random.normal(jax.random.key(0), (batch, m, n), dtype=dtype)
    function = jax.jit(jax.numpy.linalg.qr)
    return {f"JAX {jax.__version__}": on_host(lambda: jax.block_until_ready(function(a)))}


def resident(case, args, *words):
    """What bench says of the kernels alone, and of their check; None: nothing."""
    m, n, batch = case
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "bench.json")
        done = subprocess.run(
            [args.qrtool, "bench", "--shape", f"{m}x{n}", "--batch", str(batch), *words, "--device",
             args.device, "--against", "none", "--precision", args.precision,
             *(["--complex"] if args.complex else []), "--limit-seconds", "5", "--export-json",
             path], check=False, capture_output=True, text=True)
        if done.returncode:
            print(f"kernels alone: {done.stderr.strip()}", file=sys.stderr)
            return None
        with open(path, encoding="utf-8") as file:
            case = json.load(file)["cases"][0]
            return case if case["seconds"] else None  # it takes too long for bench


def measured(case, kind, contestants, args, *words):
    m, n, batch = case
    times = {name: all_seconds(once, args) for name, once in contestants.items()}
    line = {"m": m, "n": n, "batch": batch, "work": kind, "type": args.type, "seconds": times}
    found = resident(case, args, *words) if args.qrtool else None
    if found:
        times["resident"] = found["seconds"]["all"]
        line.update(check_seconds=found["check_seconds"], variant=found["variant"])
    print(f"{kind} {m}x{n} x {batch} {args.type}: " + ", ".join(
        f"{name} {1e3 * statistics.median(values):.4g}" for name, values in times.items()) + " ms",
        flush=True)
    return line


def factor_case(torch, qrtool, case, args):
    m, n, batch = case
    a = torch.randn(batch, m, n, device="cuda", dtype=getattr(torch, args.type))
    q, r = qrtool.qr(a)
    assert qrtool.verify(a, q, r)
    del q, r
    name = f"PyTorch {torch.__version__.split('+')[0]}"
    return measured(case, "qr", {
        "qrtool": on_stream(torch, lambda: qrtool.qr(a, check="none")),
        "qrtool, behind work": on_stream(torch, lambda: qrtool.qr(a, check="none"), BUSY_CYCLES),
        "qrtool, checked": on_stream(torch, lambda: qrtool.qr(a)),
        name: on_stream(torch, lambda: torch.linalg.qr(a)), **jax_once(case, args.type)}, args)


def solve_case(torch, qrtool, case, args):
    m, n, batch = case
    a = torch.randn(batch, m, n, device="cuda", dtype=getattr(torch, args.type))
    b = torch.randn(batch, m, 1, device="cuda", dtype=a.dtype)
    name = f"PyTorch {torch.__version__.split('+')[0]}"
    return measured(case, "lstsq", {
        "qrtool, checked": on_stream(torch, lambda: qrtool.lstsq(a, b)),
        name: on_stream(torch, lambda: torch.linalg.lstsq(a, b))}, args, "--solve")


def first_case(case, args):
    m, n, batch = case
    with tempfile.TemporaryDirectory() as folder:
        def calls(own, of_driver):
            done = subprocess.run(
                [sys.executable, "-c", FIRST, str(m), str(n), str(batch), args.type], check=True,
                capture_output=True, text=True, env={
                    **os.environ, "PYTHONPATH": str(PACKAGE), "XDG_CACHE_HOME": f"{folder}/{own}",
                    "CUDA_CACHE_PATH": f"{folder}/{of_driver}", "QRTOOL_LIBRARY": args.library})
            return dict(zip(("first", "second"), map(float, done.stdout.split())))
        found = {"empty": calls("own", "driver"), "full": calls("own", "driver"),
                 "full, the driver's empty": calls("own", "other")}
    print(f"first call {m}x{n} x {batch} {args.type}: " + "; ".join(
        f"caches {name}: {times['first']:.2f} s, then {times['second']:.3g}"
        for name, times in found.items()), flush=True)
    return {"m": m, "n": n, "batch": batch, "type": args.type, "seconds": found}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("library")
    parser.add_argument("--qrtool", help="the program, for its kernels alone")
    parser.add_argument("--device", default="nvidia", help="of the program")
    parser.add_argument("--cases", default=CASES)
    parser.add_argument("--systems", default=SYSTEMS)
    parser.add_argument("--precision", choices=("single", "double"), default="single")
    parser.add_argument("--complex", action="store_true")
    parser.add_argument("--first", action="store_true")
    parser.add_argument("--repeats", type=int, default=30)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--budget", type=float, default=110)
    parser.add_argument("--json")
    args = parser.parse_args()
    args.type = TYPES[args.precision, args.complex]
    os.environ["QRTOOL_LIBRARY"] = args.library = os.path.abspath(args.library)
    sys.path.insert(0, str(PACKAGE))

    def cases_of(text):
        return [tuple(int(size) for size in case.split("x")) for case in text.split(",") if case]

    begun = time.monotonic()
    first = [first_case(case, args) for case in cases_of(FIRST_CASES)] if args.first else []
    import qrtool
    import torch
    cases, asked = [], [*((factor_case, case) for case in cases_of(args.cases)),
                        *((solve_case, case) for case in cases_of(args.systems))]
    for measure, case in asked:
        if time.monotonic() - begun < args.budget:
            cases.append(measure(torch, qrtool, case, args))
    print(f"{len(cases)} cases of {len(asked)} in {time.monotonic() - begun:.0f} s")
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump({"schema": "qrtool.device-speed/1", "gpu": torch.cuda.get_device_name(),
                       "cases": cases, "first": first}, file)


if __name__ == "__main__":
    main()
