#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""qrtool.qr from NumPy arrays to NumPy arrays, beside numpy.linalg.qr, scipy.linalg.qr (one matrix)
and torch.linalg.qr on the CPU, or on a GPU from host memory and back.

    python_peers.py LIBQRTOOL [--device cpu|NAME] [--cases 64x64x15000,..] [--precision double]
                    [--rounds N] [--seconds S] [--json FILE]

LIBQRTOOL is libqrtool.so.1. Peers take turns, and all cores; what is missing is left out, and a
peer that takes more than --seconds for its first call has this one alone. qrtool checks every
matrix, its peers none. The overhead is that of 100 calls for one 64x64 on the CPU with one thread,
less the C function on the same memory. Needs numpy; no test.

Two peers only move A to the GPU, and as many bytes as Q and R have back into new arrays. "copies"
lets the driver do it, one array after another; "ring" copies through page-locked pieces, with both
directions and the copies of the host at a time. The faster one is the least time that any program
needs for host arrays.
"""
import argparse
import ctypes
import json
import os
import pathlib
import statistics
import sys
import time

import numpy as np

os.environ["QRTOOL_LIBRARY"] = os.path.abspath(sys.argv[1])
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "app/python"))
import qrtool  # noqa: E402
from qrtool import _arrays, _library  # noqa: E402

CASES = "64x64x15000,256x128x2000,2048x2048x1,1000000x32x1"
TYPE = {"single": np.float32, "double": np.float64}
NAMES = {"numpy": "NumPy", "scipy": "SciPy", "torch": "PyTorch"}


def version_of(module):
    return f"{NAMES[module.__name__]} {module.__version__.split('+')[0]}"


class Ring:
    """Page-locked pieces through which arrays move to the GPU and from there."""
    PIECES, PIECE_BYTES = 4, 8 << 20

    def __init__(self, torch):
        def pieces(**place):
            return [torch.empty(self.PIECE_BYTES, dtype=torch.uint8, **place)
                    for _ in range(self.PIECES)]

        self.torch = torch
        self.to_send, self.sent = pieces(pin_memory=True), pieces(device="cuda")
        self.fetched, self.to_fetch = pieces(pin_memory=True), pieces(device="cuda")
        self.sending, self.fetching = torch.cuda.Stream(), torch.cuda.Stream()
        self.has_sent = [torch.cuda.Event() for _ in range(self.PIECES)]
        self.has_fetched = [torch.cuda.Event() for _ in range(self.PIECES)]

    def parts(self, array):
        """Its bytes, a piece at a time."""
        return self.torch.from_numpy(array.reshape(-1).view(np.uint8)).split(self.PIECE_BYTES)

    def start(self, stream, source, target, event):
        with self.torch.cuda.stream(stream):
            target.copy_(source, non_blocking=True)
            event.record(stream)

    def move(self, a, shapes):
        """New arrays of these shapes, and of a's type, with bytes from the GPU, where a went."""
        new = [np.empty(shape, a.dtype) for shape in shapes]
        there, back = self.parts(a), [part for array in new for part in self.parts(array)]
        for i in range(max(len(there), len(back) + self.PIECES - 1)):
            slot, last = i % self.PIECES, i - self.PIECES + 1
            if i < len(there):
                size = len(there[i])
                self.has_sent[slot].synchronize()
                self.to_send[slot][:size].copy_(there[i])
                self.start(self.sending, self.to_send[slot][:size], self.sent[slot][:size],
                           self.has_sent[slot])
            if i < len(back):
                size = len(back[i])
                self.start(self.fetching, self.to_fetch[slot][:size], self.fetched[slot][:size],
                           self.has_fetched[slot])
            if 0 <= last < len(back):
                slot = last % self.PIECES
                self.has_fetched[slot].synchronize()
                back[last].copy_(self.fetched[slot][:len(back[last])])
        self.torch.cuda.synchronize()
        return new


def gpu_peers(torch, name, a):
    """torch.linalg.qr on the GPU, and what only moves the same bytes."""
    *batch, m, n = a.shape
    shapes = [(*batch, m, min(m, n)), (*batch, min(m, n), n)]
    torch.linalg.qr(torch.ones(2, 2).cuda())  # starts the GPU and loads its libraries
    ring, there = Ring(torch), [torch.empty(shape, device="cuda", dtype=torch.from_numpy(a).dtype)
                                for shape in shapes]

    def qr():
        q, r = torch.linalg.qr(torch.from_numpy(a).cuda())
        return q.cpu().numpy(), r.cpu().numpy()

    def copies():
        torch.from_numpy(a).cuda()
        return [array.cpu().numpy() for array in there]

    return {f"{name}, GPU": qr, "copies": copies, "ring": lambda: ring.move(a, shapes)}


def peers_of(args, a):
    """name -> a function that makes Q and R of the host memory a, in host memory."""
    peers = {"qrtool": lambda: qrtool.qr(a, device=args.device)}
    try:
        import torch

        name = version_of(torch)
    except ImportError:
        torch = None
    if args.device != "cpu" and torch and torch.cuda.is_available():
        return {**peers, **gpu_peers(torch, name, a)}
    peers[version_of(np)] = lambda: np.linalg.qr(a)
    if torch:
        peers[name] = lambda: torch.linalg.qr(torch.from_numpy(a))
    if a.shape[0] == 1:
        try:
            import scipy.linalg

            peers[version_of(scipy)] = lambda: scipy.linalg.qr(
                a[0], mode="economic", check_finite=False)
        except ImportError:
            pass
    return peers


def seconds_of(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def measure(args, m, n, batch):
    a = np.random.default_rng(1).standard_normal((batch, m, n)).astype(TYPE[args.precision])
    peers = peers_of(args, a)
    samples = {}
    for name, call in list(peers.items()):  # the first call loads, builds and allocates
        first = seconds_of(call)
        samples[name] = []
        if first > args.seconds and name != "qrtool":
            samples[name] = [first]
            del peers[name]
    for _ in range(args.rounds):
        for name, call in peers.items():
            samples[name].append(seconds_of(call))
    return {"m": m, "n": n, "batch": batch, "precision": args.precision, "mode": "reduced",
            "seconds": samples}


def overhead_seconds(rounds=7, calls=100):
    """Of each round the difference for a call, on one thread."""
    qrtool.open_device("cpu", threads=1)
    a = np.random.default_rng(2).standard_normal((64, 64))
    q, r, lines = np.empty_like(a), np.empty_like(a), np.empty((), qrtool.REPORT)
    struct, _ = _arrays.matrices_of(a)
    options = qrtool._factor_options("reduced", None, "full", False, False, False)
    out = _library.Factors(_library.FACTORS_SIZE)
    out.reports, out.q, out.r = map(_arrays.address_of, (lines, q, r))
    handle = qrtool.context_of("cpu").handle
    parts = [ctypes.byref(part) for part in (struct, options, out)]

    def whole():
        for _ in range(calls):
            qrtool.qr(a, device="cpu")

    def function():
        for _ in range(calls):
            _library.LIBRARY.qrtool_factor(handle, *parts)

    whole(), function()
    found = [(seconds_of(whole) - seconds_of(function)) / calls for _ in range(rounds)]
    qrtool.open_device("cpu")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library", metavar="LIBQRTOOL")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--cases", default=CASES)
    parser.add_argument("--precision", default="single", choices=TYPE)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--json", help="a file for every time")
    args = parser.parse_args()
    result = {"schema": "qrtool.python-peers/1", "device": args.device,
              "overhead_seconds": overhead_seconds(), "cases": []}
    print(f"overhead: {1e6 * statistics.median(result['overhead_seconds']):.1f} us a call")
    for case in args.cases.split(","):
        result["cases"].append(measure(args, *map(int, case.split("x"))))
        times = result["cases"][-1]["seconds"]
        own = statistics.median(times["qrtool"])
        print(f"{case}: qrtool {1e3 * own:.3g} ms; " + ", ".join(
            f"{name} {statistics.median(runs) / own:.3g} times as long"
            for name, runs in times.items() if name != "qrtool"), flush=True)
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump(result, file)


if __name__ == "__main__":
    main()
