#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`qrtool factor` and `solve` on a GPU from file to file, beside its CPU, scripts that load .npy
files, call torch.linalg on the GPU or numpy.linalg, and save what comes, and a plain copy of as
many bytes. A job is SHAPE:TYPE, with :r for R alone and :solve for least squares, one right side
each.

    device_files.py QRTOOL FOLDER OUT.json [--jobs 12000x12000:f8,...] [--rounds N] [--limit S]
                    [--disk] [--within S]

FOLDER is best one in memory, with 20 GB free. Wall seconds of whole processes; of the scripts also
without their imports. "cold": the first run of a job, with the driver's cache of kernels emptied
before. The scripts check nothing, qrtool checks every matrix. PyTorch solves by lstsq, and apart
from it by the normal equations, whose error grows with the square of the condition number.

With --disk, FOLDER is on a disk: few jobs, of qrtool on the GPU with its kernels built before, and
of the copy, both with the time until the output is on the disk. The input is in the page cache.
A job is left out that would end after --within, by the bytes and the time of the one before.
Needs numpy and torch; no test.
"""
import argparse
import json
import math
import os
import platform
import shutil
import statistics
import subprocess
import sys
import time

ONE_MATRIX = ("12000x12000:f8 5000x5000:f8 5000x5000:f4 1000000x128:f8 1000000x128:f4 "
              "1000000x128:f8:r").split()
MANY_MATRICES = "150000x64x64:f4 150000x64x64:f8 4x4096x4096:f4 200x2000x2000:f4".split()
DISK_JOBS = "5000x5000:f8 1000000x128:f8 150000x64x64:f4 200x2000x2000:f4".split()
TORCH = """
import sys, time
begun = time.perf_counter()
import numpy as np
import torch
imported = time.perf_counter()
a = torch.from_numpy(np.load(sys.argv[1])).cuda()
if sys.argv[3] == "solve":
    b = torch.from_numpy(np.load(sys.argv[1].replace("a.npy", "b.npy"))).cuda()
    if sys.argv[4] == "normal equations":
        factor, _ = torch.linalg.cholesky_ex(a.mT @ a)
        x = torch.cholesky_solve(a.mT @ b[..., None], factor)[..., 0]
    else:
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
        self.input_bytes = math.prod(self.shape) * int(self.type[1:])
        self.results = [self.target + end for end in (
            {"reduced": [".Q.npy", ".R.npy"], "r": [".R.npy"], "solve": [".X.npy"]}[self.mode])]

    def generate(self):
        self.fill(self.source, self.shape)
        if self.mode == "solve":
            self.fill(self.sides, self.shape[:-1])

    def fill(self, name, shape):
        """Turns of one block of numbers, until there are enough. They are on the disk afterwards,
        so that nobody writes them while something is timed."""
        import numpy as np

        block = np.random.default_rng(1).standard_normal(1 << 22).astype(self.type)
        header = {"descr": block.dtype.str, "fortran_order": False, "shape": tuple(shape)}
        left, turn = math.prod(shape), 0
        with open(name, "wb") as file:
            np.lib.format.write_array_header_1_0(file, header)
            while left:
                for part in (block[turn:], block[:turn]):
                    file.write(part[:left])
                    left -= min(left, part.size)
                turn = (turn + 7919) % block.size
            os.fsync(file.fileno())

    def clear(self):
        for name in (*self.results, self.target + ".report.json", self.target + ".copy"):
            if os.path.exists(name):
                os.remove(name)

    def tool(self, qrtool, backend):
        work = (["solve", self.source, self.sides, self.target + ".npy"] if self.mode == "solve"
                else ["factor", self.source, self.target + ".npy", "--mode", self.mode])
        return [qrtool, *work, "--backend", backend, "--json", "--quiet", "--force"]

    def script(self, text, way=""):
        return [sys.executable, "-c", text, self.source, self.target, self.mode, way]


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


def copy_seconds(job, on_disk):
    """A plain copy of the bytes that a run writes, on a disk until they are there. In memory the
    largest file is copied once before, as pages that no process had take longer."""
    if on_disk:
        return sum(one_copy(job, name, on_disk) for name in job.results)
    one_copy(job, max(job.results, key=os.path.getsize), on_disk)
    return sum(one_copy(job, name, on_disk) for name in job.results)


def one_copy(job, name, on_disk):
    start = time.perf_counter()
    subprocess.run(["cp", name, job.target + ".copy"], check=True)
    if on_disk:
        subprocess.run(["sync", job.target + ".copy"], check=True)
    seconds = time.perf_counter() - start
    os.remove(job.target + ".copy")
    return seconds


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

    if args.disk:
        subprocess.run([args.qrtool, "devices", "--build", job.source], check=True,
                       capture_output=True, env=dict(os.environ, **with_cache))
    else:
        take("qrtool on the GPU, cold", 1, job.tool(args.qrtool, "opencl"), with_cache)
    take("qrtool on the GPU", args.rounds, job.tool(args.qrtool, "opencl"), with_cache)
    if all(map(os.path.exists, job.results)):
        samples["cp of the output"] = [copy_seconds(job, args.disk)]
    if not args.disk:
        take("qrtool on the CPU", args.rounds, job.tool(args.qrtool, "cpu"))
        take("PyTorch", 1, job.script(TORCH))
        if job.mode == "solve":
            take("PyTorch, normal equations", 1, job.script(TORCH, "normal equations"))
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
    parser.add_argument("--jobs", type=lambda text: text.split(","))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--limit", type=float, default=30)
    parser.add_argument("--disk", action="store_true")
    parser.add_argument("--within", type=float, default=math.inf)
    args = parser.parse_args()
    os.makedirs(args.folder, exist_ok=True)
    file_system = subprocess.run(["df", "--output=fstype", args.folder], capture_output=True,
                                 text=True, check=True).stdout.split()[-1]
    result = {"schema": "qrtool.file-peers/1", "cores": os.cpu_count(),
              "processor": platform.processor(), "file_system": file_system, "jobs": {}}
    begun, seconds_per_byte = time.monotonic(), 0
    for text in args.jobs or (DISK_JOBS if args.disk else ONE_MATRIX + MANY_MATRICES):
        job, job_begun = Job(text, args.folder), time.monotonic()
        if job_begun - begun + seconds_per_byte * job.input_bytes > args.within:
            print(f"{text}: left out, as it would take too long", flush=True)
            continue
        result["jobs"][text] = samples = measure(job, args)
        seconds_per_byte = (time.monotonic() - job_begun) / job.input_bytes
        print(text + ": " + ", ".join(f"{name} {statistics.median(times):.3f}"
                                      for name, times in samples.items()
                                      if isinstance(times, list)), flush=True)
        with open(args.out, "w", encoding="utf-8") as file:
            json.dump(result, file, indent=1)


if __name__ == "__main__":
    main()
