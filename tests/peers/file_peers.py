#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`qrtool factor` from file to file against the script that it replaces: h5py, numpy.linalg.qr,
h5py.

    file_peers.py QRTOOL [--shape BxMxN] [--precision single] [--rounds N] [--folder PATH]
                         [--backend cpu]

Generates a batch in the folder, then runs both in turn. Each is a process of its own,
timed from its start to its end, sync to the disk included for both and given apart. The script
checks nothing. Needs numpy and h5py; no test.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

SCRIPT = """
import json, os, sys, time
start = time.perf_counter()
import h5py
import numpy as np
source, target = sys.argv[1:]
imported = time.perf_counter()
with h5py.File(source, "r") as f:
    a = f["A"][...]
read = time.perf_counter()
q, r = np.linalg.qr(a)
factored = time.perf_counter()
with h5py.File(target, "w") as f:
    f["Q"], f["R"] = q, r
written = time.perf_counter()
file = os.open(target, os.O_RDONLY)
os.fsync(file)
synced = time.perf_counter()
print(json.dumps({"start": imported - start, "read": read - imported, "factor": factored - read,
                  "write": written - factored, "sync": synced - written}))
"""


def run(command):
    start = time.perf_counter()
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return time.perf_counter() - start, json.loads(output)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("qrtool")
    parser.add_argument("--shape", default="20000x64x64")
    parser.add_argument("--precision", default="single", choices=("single", "double"))
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", default=".")
    parser.add_argument("--backend", default="cpu")
    parser.add_argument("--json", help="a file for every time")
    args = parser.parse_args()
    source, ours, theirs = (os.path.join(args.folder, name)
                            for name in ("peers_a.h5", "peers_q.h5", "peers_n.h5"))
    subprocess.run([args.qrtool, "generate", "--quiet", "--force", "--shape", args.shape,
                    "--precision", args.precision, source], check=True)
    tool = [args.qrtool, "factor", source, ours, "--backend", args.backend, "--force", "--json"]
    script = [sys.executable, "-c", SCRIPT, source, theirs]
    with open(source, "rb") as file:  # into the page cache
        while file.read(1 << 24):
            pass
    rows = {"qrtool factor": [], "h5py, numpy.linalg.qr": []}
    try:
        for _ in range(args.rounds):
            for name, command in zip(rows, (tool, script)):
                # Freeing what an old file has in the page cache takes time.
                for path in (ours, theirs):
                    if os.path.exists(path):
                        os.remove(path)
                wall, report = run(command)
                seconds = report.get("seconds", report)
                rows[name].append({"wall": wall,
                                   **{k: v for k,
                                      v in seconds.items() if isinstance(v, (int, float))}})
    finally:
        for path in (source, ours, theirs):
            if os.path.exists(path):
                os.remove(path)
    if args.json:
        with open(args.json, "w") as file:
            json.dump({"schema": "qrtool.cpu-files/1", "shape": args.shape, "runs": rows}, file)
    for name, runs in rows.items():
        print(f"{name}: " + ", ".join(f"{key} {statistics.median(r[key] for r in runs):.3f} s"
                                      for key in runs[0]))
    without_sync = [[r["wall"] - r["sync"] for r in runs] for runs in rows.values()]
    ratios = [b["wall"] / a["wall"] for a, b in zip(*rows.values())]
    print(f"script / qrtool: {statistics.median(ratios):.2f} in all, "
          f"{statistics.median(b / a for a, b in zip(*without_sync)):.2f} without sync")


if __name__ == "__main__":
    main()
