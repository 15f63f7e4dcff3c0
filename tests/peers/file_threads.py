#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""From file to file with 2, 4, 8, ... threads, beside a plain copy of the same bytes by as many
threads.

    python3 tests/peers/file_threads.py qrtool
    python3 tests/peers/file_threads.py qrtool --folder /var/tmp --threads 1,2,4 --shape 20000x64x64

A round runs `qrtool factor` and the plain copy once for each number of threads; the table has the
least time of all rounds. The plain copy reads the input in pieces of 1 MiB, and then writes as many
bytes as the output has to one file whose space was reserved, and syncs it; it computes nothing. The
stages of the tool overlap, so that each may take longer than it would alone; "write" contains its
sync. Everything is deleted at the end."""
import argparse
import json
import os
import shutil
import subprocess
import tempfile
import threading
import time

PIECE = 1 << 20
STEPS = ("read", "factor", "check", "write", "total")


def in_threads(threads, pieces, transfer):
    """Calls transfer(position, buffer) for every piece, in turn on each thread, and returns the
    seconds of all."""

    def work(first):
        buffer = bytearray(os.urandom(4096) * (PIECE // 4096))
        for piece in range(first, pieces, threads):
            transfer(piece * PIECE, buffer)

    workers = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    start = time.perf_counter()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return time.perf_counter() - start


def plain_read(path, threads):
    file = os.open(path, os.O_RDONLY)
    pieces = os.fstat(file).st_size // PIECE
    seconds = in_threads(threads, pieces, lambda position,
                         buffer: os.preadv(file, [buffer], position))
    os.close(file)
    return seconds


def plain_write(path, size, threads):
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    os.posix_fallocate(file, 0, size)
    seconds = in_threads(threads, size // PIECE, lambda position,
                         buffer: os.pwrite(file, buffer, position))
    start = time.perf_counter()
    os.fsync(file)
    seconds += time.perf_counter() - start
    os.close(file)
    os.unlink(path)
    return seconds


def factor(tool, folder, threads):
    """The seconds of the tool's stages, and of the process."""
    output = os.path.join(folder, "q.h5")
    start = time.perf_counter()
    done = subprocess.run([tool, "factor", os.path.join(folder, "a.h5"), output, "-f", "--backend",
                           "cpu", "--threads",
                           str(threads), "--json"], capture_output=True, text=True, check=True)
    seconds = dict(json.loads(done.stdout)["seconds"], total=time.perf_counter() - start)
    size = os.path.getsize(output)
    os.unlink(output)
    seconds["write"] += seconds["sync"]
    return {step: seconds[step] for step in STEPS}, size


def least(times):
    return {step: min(one[step] for one in times) for step in times[0]}


def measure(tool, folder, options):
    source = os.path.join(folder, "a.h5")
    subprocess.run([tool, "generate", "--shape", options.shape, source, "-q"], check=True)
    times = {threads: [] for threads in options.threads}
    for _ in range(options.rounds):
        for threads in options.threads:
            seconds, size = factor(tool, folder, threads)
            seconds["plain read"] = plain_read(source, threads)
            seconds["plain write"] = plain_write(os.path.join(folder, "plain"), size, threads)
            times[threads].append(seconds)
    print(f"{options.shape} float32 in {options.folder}: {os.path.getsize(source) / 1e9:.2f} GB "
          f"in, {size / 1e9:.2f} GB "
          f"out, {os.cpu_count()} cores, least of {options.rounds} rounds, seconds\n")
    print("| threads | read | plain read | ratio | write | plain write | ratio | factor | check | "
          "total |")
    print("| --- " * 10 + "|")
    for threads in options.threads:
        best = least(times[threads])
        reading, writing = best["read"] / best["plain read"], best["write"] / best["plain write"]
        print(f"| {threads} | {best['read']:.3f} | {best['plain read']:.3f} | {reading:.2f} | "
              f"{best['write']:.3f} | "
              f"{best['plain write']:.3f} | {writing:.2f} | {best['factor']:.3f} | "
              f"{best['check']:.3f} | "
              f"{best['total']:.3f} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tool", help="the program qrtool")
    parser.add_argument("--folder", default="/dev/shm",
                        help="where the files are; default /dev/shm, in memory")
    parser.add_argument("--shape", default="100000x64x64")
    parser.add_argument("--threads", default="2,4,8,16")
    parser.add_argument("--rounds", type=int, default=2)
    options = parser.parse_args()
    options.threads = [int(number) for number in options.threads.split(",")]
    folder = tempfile.mkdtemp(prefix="qrtool-files-", dir=options.folder)
    try:
        measure(shutil.which(options.tool) or options.tool, folder, options)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
