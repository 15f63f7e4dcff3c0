#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`qrtool factor` from file to file on one GPU and on all GPUs of its kind, by wall seconds.

    several_gpus.py QRTOOL FOLDER OUT.json [--shapes 200000x64x64,500x1000x1000] [--rounds 2]

FOLDER is best one in memory, with 10 GB free. One and all take turns within a round.
"""
import argparse
import json
import os
import statistics
import subprocess
import time


def wall_seconds(command, target):
    for end in (".Q.npy", ".R.npy"):
        if os.path.exists(target + end):
            os.remove(target + end)
    begun = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - begun


def measure(args, shape):
    source, target = (os.path.join(args.folder, name) for name in ("many.npy", "many_out"))
    try:
        subprocess.run([args.qrtool, "generate", "--quiet", "--force", "--shape", shape,
                        "--precision", "single", source], check=True)
        commands = {device: [args.qrtool, "factor", source, target + ".npy", "--device", device,
                             "--quiet", "--force"] for device in (args.one, "all")}
        for command in commands.values():  # kernels are built afterwards
            wall_seconds(command, target)
        runs = {"one": [], "all": []}
        for _ in range(args.rounds):
            for name, command in zip(runs, commands.values()):
                runs[name].append(wall_seconds(command, target))
        return runs
    finally:
        for path in (source, *(target + end for end in (".Q.npy", ".R.npy", ".report.json"))):
            if os.path.exists(path):
                os.remove(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("qrtool")
    parser.add_argument("folder")
    parser.add_argument("out")
    parser.add_argument("--shapes", default="200000x64x64,500x1000x1000")
    parser.add_argument("--one", default="0", help="the device that stands alone")
    parser.add_argument("--rounds", type=int, default=2)
    args = parser.parse_args()
    cases = []
    for shape in args.shapes.split(","):
        runs = measure(args, shape)
        batch, m, n = (int(extent) for extent in shape.split("x"))
        cases.append({"batch": batch, "m": m, "n": n, "seconds": runs})
        print(shape + ": " + ", ".join(f"{name} {statistics.median(times):.3f} s"
                                       for name, times in runs.items()), flush=True)
    with open(args.out, "w", encoding="utf-8") as file:
        json.dump({"schema": "qrtool.several-gpus/1", "cases": cases}, file)


if __name__ == "__main__":
    main()
