#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Joules of one GPU for a batch of Q and R, by the driver's counter: qrtool, with its check, beside
JAX (jitted linalg.qr) and PyTorch (geqrf + orgqr), which check nothing. Data stays on the device.

    energy.py QRTOOL OUT.json [--device nvidia] [--cases 64x64x15000,..] [--seconds 2] [--rounds 2]

The counter counts all that the card draws. Of qrtool it is read around two processes, of which one
makes more runs: what they take beside these runs, for the start and the data, is in both.
"""
import argparse
import ctypes
import json
import statistics
import subprocess
import sys
import time

from gpu_peers import jax_calls, torch_calls

CASES = "64x64x15000,256x128x5000"
FEW_RUNS = 50


class Counter:
    """Of the first GPU of the driver's list."""

    def __init__(self):
        self.nvml, self.handle = ctypes.CDLL("libnvidia-ml.so.1"), ctypes.c_void_p()
        self.must(self.nvml.nvmlInit_v2())
        self.must(self.nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(self.handle)))

    @staticmethod
    def must(code):
        if code != 0:
            sys.exit(f"the driver's counter of energy cannot be read (NVML error {code})")

    def joules(self):
        millijoules = ctypes.c_ulonglong()
        self.must(self.nvml.nvmlDeviceGetTotalEnergyConsumption(self.handle,
                                                                ctypes.byref(millijoules)))
        return 1e-3 * millijoules.value

    def of(self, work):
        before = self.joules()
        result = work()
        time.sleep(0.1)  # the counter goes on every few hundredths of a second
        return self.joules() - before, result


def of_qrtool(counter, args, case, precision):
    """Joules of one run."""
    m, n, batch = case

    def bench(runs):
        done = subprocess.run(
            [args.qrtool, "bench", "--shape", f"{m}x{n}", "--batch", str(batch), "--precision",
             precision, "--device", args.device, "--against", "none", "--runs", str(runs),
             "--limit-seconds", "600", "--json"], capture_output=True, text=True, check=True)
        return json.loads(done.stdout)["cases"][0]

    found = bench(FEW_RUNS)
    seconds = found["seconds"]["median"] + found["check_seconds"]
    runs = max(FEW_RUNS, round(args.seconds / seconds))
    few, _ = counter.of(lambda: bench(FEW_RUNS))
    many, _ = counter.of(lambda: bench(FEW_RUNS + runs))
    return (many - few) / runs


def peers_of(case, precision):
    """{name: call}, of which each returns when its work is done."""
    def synchronous(call):
        def done():
            import torch
            call()
            torch.cuda.synchronize()
        return done

    qr = {name: synchronous(call) for name, call in
          torch_calls(case, precision).get("reduced", {}).items() if name.startswith("geqrf")}
    return {**jax_calls(case, precision).get("reduced", {}), **qr}


def of_call(counter, args, call):
    """Joules of one call."""
    call()

    def calls():
        begun, number = time.monotonic(), 0
        while number < 2 or time.monotonic() - begun < args.seconds:
            call()
            number += 1
        return number

    joules, number = counter.of(calls)
    return joules / number


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("qrtool")
    parser.add_argument("out")
    parser.add_argument("--device", default="nvidia")
    parser.add_argument("--cases", default=CASES)
    parser.add_argument("--seconds", type=float, default=2, help="of runs between two readings")
    parser.add_argument("--rounds", type=int, default=2)
    args = parser.parse_args()
    counter, cases = Counter(), []
    for text in args.cases.split(","):
        case = tuple(int(extent) for extent in text.split("x"))
        for precision in ("single", "double"):
            joules = {"qrtool": [of_qrtool(counter, args, case, precision)
                                 for _ in range(args.rounds)],
                      **{name: [of_call(counter, args, call) for _ in range(args.rounds)]
                         for name, call in peers_of(case, precision).items()}}
            cases.append({"m": case[0], "n": case[1], "batch": case[2], "precision": precision,
                          "joules": joules})
            print(f"{text} {precision}: " + ", ".join(
                f"{name} {statistics.median(values):.3g} J" for name, values in joules.items()),
                flush=True)
    with open(args.out, "w", encoding="utf-8") as file:
        json.dump({"schema": "qrtool.energy/1", "cases": cases}, file)


if __name__ == "__main__":
    main()
