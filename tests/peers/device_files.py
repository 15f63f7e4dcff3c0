#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`qrtool factor` and `solve` on a GPU from file to file, beside its CPU, scripts that load .npy
files, call torch.linalg on the GPU or numpy.linalg, and save what comes, and a plain copy of as
many bytes. A job is SHAPE:TYPE, with :r for R alone and :solve for least squares, one right side
each.

    device_files.py QRTOOL FOLDER OUT.json [--jobs 12000x12000:f8,...] [--rounds N] [--limit S]

FOLDER is best one in memory, with 20 GB free. Wall seconds of whole processes; of the scripts also
without their imports. "cold": the first run of a job, with the driver's cache of kernels emptied
before. The scripts check nothing, qrtool checks every matrix. Needs numpy and torch; no test.
"""
import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import time

JOBS = ("12000x12000:f8 5000x5000:f8 5000x5000:f4 1000000x128:f8 1000000x128:f4 1000000x128:f8:r "
        "150000x64x64:f4 150000x64x64:f8 4x4096x4096:f4 200x2000x2000:f4 "
        "65536x288x97:f4:solve").split()
TORCH = """
import sys, time
begun = time.perf_counter()
import numpy as np
import torch
imported = time.perf_counter()
a = torch.from_numpy(np.load(sys.argv[1])).cuda()
if sys.argv[3] == "solve":
    b = torch.from_numpy(np.load(sys.argv[1].replace("a.npy", "b.npy"))).cuda()
    x = torch.linalg.lstsq(a, b[..., None]).solution[..., 0]
    np.save(sys.argv[2] + ".X.npy", x.cpu().numpy())
else:
    q, r = torch.linalg.qr(a, mode=sys.argv[3])
    if sys.argv[3] != "r":
        np.save(sys.argv[2] + ".Q.npy", q.cpu().numpy())
    np.save(sys.argv[2] + ".R.npy", r.cpu().numpy())
print(imported - begun)
"""
NUMPY = """
import sys, time
begun = time.perf_counter()
import numpy as np
imported = time.perf_counter()
a = np.load(sys.argv[1])
if sys.argv[3] == "solve":
    b = np.load(sys.argv[1].replace("a.npy", "b.npy"))
    x = np.stack([np.linalg.lstsq(*pair, rcond=None)[0] for pair in zip(a, b)])
    np.save(sys.argv[2] + ".X.npy", x)
elif sys.argv[3] == "r":
    np.save(sys.argv[2] + ".R.npy", np.linalg.qr(a, mode="r"))
else:
    q, r = np.linalg.qr(a)
    np.save(sys.argv[2] + ".Q.npy", q)
    np.save(sys.argv[2] + ".R.npy", r)
print(imported - begun)
"""


class Job:
    def __init__(self, text, folder):
        shape, self.type, *mode = text.split(":")
        self.name, self.mode = text, mode[0] if mode else "reduced"
        self.shape = [int(extent) for extent in shape.split("x")]
        self.source = os.path.join(folder, "a.npy")
        self.sides = os.path.join(folder, "b.npy")
        self.target = os.path.join(folder, "out")
        self.results = [self.target + end for end in (
            [".X.npy"] if self.mode == "solve" else [".Q.npy", ".R.npy"])]

    def generate(self):
        self.fill(self.source, self.shape)
        if self.mode == "solve":
            self.fill(self.sides, self.shape[:-1])

    def fill(self, name, shape):
        import numpy as np

        a = np.lib.format.open_memmap(name, "w+", dtype=self.type, shape=tuple(shape))
        flat, block = a.reshape(-1), np.random.default_rng(1).standard_normal(1 << 22)
        for first in range(0, flat.size, block.size):
            part = flat[first:first + block.size]
            part[:] = np.roll(block, 7919 * (first // block.size))[:part.size]

    def clear(self):
        for name in (*self.results, self.target + ".report.json", self.target + ".copy"):
            if os.path.exists(name):
                os.remove(name)

    def tool(self, qrtool, backend):
        work = (["solve", self.source, self.sides, self.target + ".npy"] if self.mode == "solve"
                else ["factor", self.source, self.target + ".npy", "--mode", self.mode])
        return [qrtool, *work, "--backend", backend, "--json", "--quiet", "--force"]

    def script(self, text):
        return [sys.executable, "-c", text, self.source, self.target, self.mode]


def timed(job, command, limit, env=None):
    """Wall seconds and what the process printed; None where it took too long or failed."""
    job.clear()
    start = time.perf_counter()
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=True,
                              env=dict(os.environ, **(env or {})))
    except (subprocess.TimeoutExpired, subprocess.CalledProcessError) as error:
        print(f"{job.name}: {command[0]}: {str(error)[-200:]}", file=sys.stderr)
        return None
    return time.perf_counter() - start, done.stdout


def copy_seconds(job):
    """A plain copy of the bytes that a run writes; A is copied, too, but not counted."""
    total = 0
    for name in filter(os.path.exists, [job.source, *job.results]):
        start = time.perf_counter()
        subprocess.run(["cp", name, job.target + ".copy"], check=True)
        if name != job.source:
            total += time.perf_counter() - start
        os.remove(job.target + ".copy")
    return total


def measure(job, args):
    job.generate()
    with_cache = {"CUDA_CACHE_PATH": os.path.join(args.folder, "kernels")}
    shutil.rmtree(with_cache["CUDA_CACHE_PATH"], ignore_errors=True)
    samples = {}

    def take(name, rounds, command, env=None):
        runs = []
        for _ in range(rounds):
            runs.append(timed(job, command, args.limit, env))
            if runs[-1] is None:
                return
        samples[name] = [run[0] for run in runs]
        if command[0] == sys.executable:
            samples[name + ", no import"] = [run[0] - float(run[1]) for run in runs]
        else:
            samples[name + ", seconds"] = json.loads(runs[-1][1])["seconds"]

    take("qrtool on the GPU, cold", 1, job.tool(args.qrtool, "opencl"), with_cache)
    take("qrtool on the GPU", args.rounds, job.tool(args.qrtool, "opencl"), with_cache)
    samples["cp of the output"] = [copy_seconds(job)]
    take("qrtool on the CPU", args.rounds, job.tool(args.qrtool, "cpu"))
    take("PyTorch", 1, job.script(TORCH))
    take("NumPy", 1, job.script(NUMPY))
    job.clear()
    for name in filter(os.path.exists, (job.source, job.sides)):
        os.remove(name)
    return samples


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("qrtool")
    parser.add_argument("folder")
    parser.add_argument("out")
    parser.add_argument("--jobs", type=lambda text: text.split(","), default=JOBS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--limit", type=float, default=30)
    args = parser.parse_args()
    os.makedirs(args.folder, exist_ok=True)
    result = {"schema": "qrtool.file-peers/1", "cores": os.cpu_count(),
              "processor": platform.processor(), "jobs": {}}
    for text in args.jobs:
        result["jobs"][text] = samples = measure(Job(text, args.folder), args)
        print(text + ": " + ", ".join(f"{name} {statistics.median(times):.3f}"
                                      for name, times in samples.items()
                                      if isinstance(times, list)), flush=True)
        with open(args.out, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=1)


if __name__ == "__main__":
    main()
