#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures what BENCHMARKS.md shows, as far as this machine can, into one JSON file.

    all.py cpu|gpu OUT.json [--build build/release] [--pieces NAME,...] [--libraries FILE,...]
           [--threads 1,2] [--device nvidia] [--dx FOLDER] [--folder PATH] [--disk PATH] [--list]

Builds nothing: `cmake --build --preset release --target qrtool qrtool_capi cpu_peers` comes before.
OUT.json holds the machine, the versions, the date, the commit, and of every piece its command, its
samples and the share of the cores that other processes used meanwhile. It is written after each
piece, and a file that was begun is gone on with where commit, machine and versions are the same. A
piece takes at most 8 minutes. Peers that are missing are left out: LAPACK libraries are named by
--libraries (MKL: pip download mkl; set MKL_THREADING_LAYER=GNU, with which libmkl_rt needs its
libraries core, intel_lp64, gnu_thread and that of the processor), PyTorch, JAX, SciPy and CuPy are
those of this Python, and --dx holds the kernels of cuSolverDx that dx_kernels.py has made. Files
lie in --folder, best in memory; --disk names a folder on a disk, with 15 GB free, for a few more.
`pages.py` makes the pages from the files in results/, and leaves out what was measured under load.
"""
import argparse
import ctypes
import datetime
import importlib.metadata
import json
import os
import pathlib
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time

import device_files

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
LIMIT_SECONDS = 480
HARD = ("gauss,graded-columns,zero-quarter,noise-quarter,small-half,band,graded-rows,"
        "near-collinear,upper,contest,offset,rank-deficient")
CPU_SHAPES = "8x8,16x16,32x32,64x64,128x64,256x128,512x256,512x512,2048x2048,1000000x32"
GPU_BATCHES = ("16x16x15000,32x32x15000,64x64x15000,128x64x15000,256x128x5000,512x256x1000,"
               "512x512x32")
GPU_LARGE = ("512x512x1,2048x2048x1,5000x5000x1,16384x16384x1,1000000x32x1,4000000x64x1,"
             "1000000x128x1")
GPU_SYSTEMS = "16x4x1000000,64x64x15000"
GPU_PAIRS = "64x64x15000,256x128x2000,512x512x32,2048x2048x1,1000000x32x1"
CPU_COMPLEX = "8x8,16x16,32x32,64x64,128x64,256x128"
GPU_COMPLEX = ("16x16x15000,32x32x15000,64x64x15000,128x64x5000,240x66x100,240x66x1000,"
               "256x128x2000,512x512x32")
TYPES = ("single", "double")


class Piece:
    """Commands whose JSON comes on standard output, or in the file that stands for {json}."""

    def __init__(self, name, *commands):
        self.name, self.commands = name, commands


def bench(*words):
    return ["{build}/app/qrtool", "bench", *words, "--json"]


def shared_pieces(device, backend, hard_shape, hard_batch, solve):
    """What both parts measure."""
    patience = ["--seconds", "10" if device == "cpu" else "2"]
    for precision in TYPES:
        yield Piece(f"hard {precision}", bench(
            "--shape", hard_shape, "--batch", hard_batch, "--kind", HARD, "--seeds", "3",
            "--precision", precision, "--against", "none", "--limit-seconds", "90", *backend))
        yield Piece(f"modes {precision}", *(bench(
            "--shape", hard_shape, "--batch", hard_batch, "--precision", precision, "--against",
            "none", *backend, *mode) for mode in (
                [], ["--mode", "r"], ["--mode", "raw"], ["--sign", "lapack"], ["--cold"])))
        yield Piece(f"solve {precision}", *(bench(
            "--solve", "--shape", shape, "--batch", batch, "--precision", precision, *backend)
            for shape, batch in solve))
        yield Piece(f"python {precision}", [
            sys.executable, str(HERE / "python_peers.py"), "{build}/app/capi/libqrtool.so.1",
            "--device", device, "--precision", precision, *patience, "--json", "{json}"])


def cpu_pieces(args):
    for threads in args.threads.split(","):
        for precision in TYPES:
            for name, shapes, *more in (("batches", CPU_SHAPES),
                                        ("complex", CPU_COMPLEX, "--complex")):
                yield Piece(f"{name} {precision} {threads}", [
                    "{build}/tests/cpu_peers", "--threads", threads, "--rounds", "9",
                    "--precisions", precision, *more, "--shapes", shapes, "--json", "{json}",
                    *args.libraries])
    yield Piece("by", [sys.executable, str(HERE / "by_peers.py"), "{build}/app/qrtool", "{json}"])
    yield Piece("window", [sys.executable, str(HERE / "window_peers.py"), "{build}/app/qrtool",
                           "{json}"])
    yield Piece("apply", [sys.executable, str(HERE / "apply_peers.py"),
                          "{build}/app/capi/libqrtool.so.1", "{json}"])
    yield from shared_pieces("cpu", ["--backend", "cpu"], "64x64", "1000",
                             [("16x4", "100000"), ("64x64", "1000"), ("288x97", "100")])
    for shape in ("20000x64x64", "1x2000x2000", "1x5000x5000"):
        for precision in TYPES:
            yield Piece(f"files {shape} {precision}", [
                sys.executable, str(HERE / "file_peers.py"), "{build}/app/qrtool", "--shape", shape,
                "--precision", precision, "--rounds", "5", "--folder", "{folder}", "--json",
                "{json}"])


def gpu_pieces(args):
    device = ["--device", args.device]
    dx = ["--dx", args.dx] if args.dx else []
    for precision in TYPES:
        for name, cases, *more in (("batches", GPU_BATCHES), ("large", GPU_LARGE),
                                   ("complex", GPU_COMPLEX, "--complex"),
                                   ("gels", GPU_SYSTEMS, "--solve")):
            if name == "gels" and not dx:
                continue
            yield Piece(f"{name} {precision}", [
                sys.executable, str(HERE / "gpu_peers.py"), "{build}/app/qrtool", *device, *more,
                "--cases", cases, "--precision", precision, "--seconds", "0.5", *dx, "--json",
                "{json}"])
        yield Piece(f"first {precision}", *(bench(
            "--shape", shape, "--batch", batch, "--precision", precision, "--against", "none",
            "--first-run", *device) for shape, batch in (
                ("16x16", "15000"), ("64x64", "15000"), ("512x512", "32"), ("2048x2048", "1"),
                ("1000000x32", "1"))))
        yield Piece(f"grid {precision}", bench(
            "--sweep", "shapes", "--precision", precision, "--against", "none", "--limit-seconds",
            "10", *device))
    for name, *pretend in (("float64",), ("none", "env", "QRTOOL_PRETEND=no-float64")):
        yield Piece(f"pairs {name}", *([*pretend, *bench(
            "--shape", f"{m}x{n}", "--batch", batch, "--precision", "single", "--against", "none",
            *device)] for m, n, batch in (case.split("x") for case in GPU_PAIRS.split(","))))
    yield from shared_pieces(args.device, device, "512x512", "32",
                             [("64x64", "15000"), ("16x4", "1000000"), ("256x128", "5000")])
    for precision in TYPES:
        for name, *more in (("arrays", "--systems", ""), ("arrays systems", "--cases", ""),
                            ("arrays complex", "--complex", "--systems", ""),
                            ("arrays first", "--first", "--cases", "", "--systems", "")):
            yield Piece(f"{name} {precision}", [
                sys.executable, str(HERE / "device_speed.py"), "{build}/app/capi/libqrtool.so.1",
                "--qrtool", "{build}/app/qrtool", *device, *more, "--precision", precision,
                "--seconds", "0.5", "--json", "{json}"])
    yield Piece("energy", [sys.executable, str(HERE / "energy.py"), "{build}/app/qrtool", "{json}",
                           *device])
    files = [sys.executable, str(HERE / "device_files.py"), "{build}/app/qrtool", "{folder}",
             "{json}", "--limit", "12"]
    for name, jobs in (("one", device_files.ONE_MATRIX), ("many", device_files.MANY_MATRICES)):
        yield Piece(f"files {name}", [*files, "--jobs", ",".join(jobs)])
    yield Piece("systems", [*files, "--jobs", "65536x288x97:f4:solve"])
    weights = ["--solve", "--shared", "--weights", "--shape", "288x97", "--batch", "262144"]
    for precision in TYPES:
        yield Piece(f"weighed {precision}", *(bench(*weights, "--precision", precision, *where)
                                              for where in (
                                                  device, ["--backend", "cpu", "--limit-seconds",
                                                           "600"])))
    if args.disk:
        yield Piece("disk", [sys.executable, str(HERE / "device_files.py"), "{build}/app/qrtool",
                             "{disk}", "{json}", "--disk", "--rounds", "2", "--limit", "30",
                             "--within", "110"])
    if said("nvidia-smi", "-L").count("GPU ") > 1:
        yield Piece("several", [sys.executable, str(HERE / "several_gpus.py"),
                                "{build}/app/qrtool", "{folder}", "{json}", "--one", args.device])


PARTS = {"cpu": cpu_pieces, "gpu": gpu_pieces}


def said(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True,
                              cwd=ROOT).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def find_libraries(names):
    """The names of those that are there. Their folders are where programs look for them, so that
    the results hold no path."""
    there = list(filter(is_there, names.split(",")))
    folders = [os.path.dirname(os.path.abspath(name)) for name in there if "/" in name]
    os.environ["LD_LIBRARY_PATH"] = ":".join(
        [*folders, *filter(None, [os.environ.get("LD_LIBRARY_PATH")])])
    return [os.path.basename(name) for name in there]


def is_there(library):
    try:
        ctypes.CDLL(library)
        return True
    except OSError:
        print(f"{library}: is not there, and is left out", flush=True)
        return False


def commit():
    """The commit of the sources; files that this measurement writes do not count as changes."""
    changed = said("git", "status", "--porcelain", "--untracked-files=no", "--", ".",
                   ":!tests/peers/results", ":!BENCHMARKS.md", ":!README.md", ":!samples")
    return said("git", "rev-parse", "--short=12", "HEAD") + ("-changed" if changed else "")


def machine(part):
    cpu = pathlib.Path("/proc/cpuinfo").read_text()
    model = re.search(r"model name\s*: (.*)", cpu)
    widest = next((name for flag, name in (("avx512f", "AVX-512"), ("avx2", "AVX2"))
                   if re.search(rf"\b{flag}\b", cpu)), "neither AVX2 nor AVX-512")
    found = {"processor": model.group(1).strip() if model else os.uname().machine,
             "instructions": widest, "cores": len(os.sched_getaffinity(0))}
    if part == "gpu":
        cards = said("nvidia-smi", "--query-gpu=name,driver_version",
                     "--format=csv,noheader").splitlines()
        found["gpu"] = " and ".join(f"{cards.count(card)} of {card}" if cards.count(card) > 1
                                    else card for card in dict.fromkeys(cards))
    return found


def versions(args):
    found = {"qrtool": said(f"{args.build}/app/qrtool", "--version").splitlines()[0],
             "python": sys.version.split()[0]}
    for package in ("numpy", "scipy", "h5py", "torch", "jax", "cupy-cuda13x",
                    "polars", "polars-ds", "polars-ols", "statsmodels"):
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            pass
    found["libraries"] = args.libraries
    if args.part == "gpu" and args.dx:
        found["kernels"] = sorted({json.loads(path.read_text(encoding="utf-8"))["version"]
                                   for path in pathlib.Path(args.dx).glob("*.json")})
    return found


def busy_seconds():
    """Of all cores since the machine started, and of this process's children that have ended."""
    words = pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    user, nice, system, _, _, irq, soft_irq, steal = (int(word) for word in words[:8])
    own = resource.getrusage(resource.RUSAGE_CHILDREN)
    ticks = os.sysconf("SC_CLK_TCK")
    return ((user + nice + system + irq + soft_irq + steal) / ticks,
            own.ru_utime + own.ru_stime)


def run(command, args, folder):
    path = os.path.join(folder, "piece.json")
    words = [word.format(build=args.build, json=path, folder=args.folder, disk=args.disk)
             for word in command]
    done = subprocess.run(words, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False)
    if done.returncode not in (0, 1):  # 1: a matrix is above its bar, and the JSON says which
        raise RuntimeError(f"{' '.join(words)}: exit {done.returncode}\n"
                           f"{done.stdout[-1000:]}{done.stderr}")  # MKL says there what it lacks
    if "{json}" not in command:
        return json.loads(done.stdout)
    if not os.path.exists(path):
        raise RuntimeError(f"{' '.join(words)}: no results\n{done.stdout[-1000:]}{done.stderr}")
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def measure(piece, args):
    begun, (all_before, own_before) = time.monotonic(), busy_seconds()
    with tempfile.TemporaryDirectory() as folder:
        results = [run(command, args, folder) for command in piece.commands]
    seconds, (all_after, own_after) = time.monotonic() - begun, busy_seconds()
    others = (all_after - all_before) - (own_after - own_before)
    # Paths are those of this machine, and say nothing to a reader.
    commands = [" ".join(os.path.basename(word) if "/" in word else word for word in command)
                for command in piece.commands]
    return {"name": piece.name, "commands": commands, "seconds": round(seconds, 1),
            "others": round(max(0.0, others) / (seconds * os.cpu_count()), 3), "results": results}


def begun_file(path, head):
    """What a file holds that was begun for the same commit, machine and versions."""
    if not os.path.exists(path):
        return {**head, "pieces": []}
    with open(path, encoding="utf-8") as file:
        found = json.load(file)
    for word in ("schema", "part", "commit", "machine", "versions"):
        if found.get(word) != head[word]:
            sys.exit(f"{path}: its {word} is {found.get(word)}, and now it is {head[word]}; "
                     "name another file")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("out", nargs="?")
    parser.add_argument("--build", default=str(ROOT / "build/release"))
    parser.add_argument("--pieces", help="default: all that the file has not")
    parser.add_argument("--libraries", default="libopenblas.so.0")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--device", default="nvidia")
    parser.add_argument("--dx", help="default: without cuSolverDx")
    parser.add_argument("--folder", default=".", help="for files of some GB")
    parser.add_argument("--disk", help="default: nothing is measured on a disk")
    parser.add_argument("--list", action="store_true", help="the names of the pieces alone")
    args = parser.parse_args()
    # The program that runs ends with this one, and is not left on the machine.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    args.libraries = find_libraries(args.libraries)
    pieces = list(PARTS[args.part](args))
    if args.list or not args.out:
        print("\n".join(piece.name for piece in pieces))
        return
    head = {"schema": "qrtool.peers/1", "part": args.part, "commit": commit(),
            "date": datetime.date.today().isoformat(), "machine": machine(args.part),
            "versions": versions(args)}
    found = begun_file(args.out, head)
    wanted = args.pieces.split(",") if args.pieces else [
        piece.name for piece in pieces
        if piece.name not in (done["name"] for done in found["pieces"])]
    for piece in pieces:
        if piece.name not in wanted:
            continue
        measured = measure(piece, args)
        found["pieces"] = [done for done in found["pieces"] if done["name"] != piece.name]
        found["pieces"].append(measured)
        with open(args.out, "w", encoding="utf-8") as file:
            json.dump(found, file, separators=(",", ":"))
            file.write("\n")
        print(f"{piece.name}: {measured['seconds']:.0f} s, others used "
              f"{100 * measured['others']:.0f} % of the cores", flush=True)


if __name__ == "__main__":
    main()
