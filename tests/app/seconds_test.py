#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The columns of --json and -v, less their overlap, are the wall time from the start of the process
to its end."""
import json
import os
import re
import time
import unittest

import numpy as np

from tool import FolderTest, has_device, run

HAS_DEVICE = has_device()
# A matrix that the host does not measure again goes in pieces, of 64 KiB in this test.
PIECES = {**os.environ, "QRTOOL_PRETEND": "piece=65536"}
# The tests run beside others, which delay a process by as much as they like. What is in no column
# is missing in every run.
MOST_RUNS = 12
# The program takes so long to start and end where nothing else runs. What it takes more at the same
# time is the machine's.
EMPTY_RUN = 0.015
# PoCL ends the threads of its device when the process ends, after the last message.
END_OF_DRIVER = 0.03
UNITS = {"s": 1, "ms": 1e-3, "us": 1e-6}


def explained(seconds):
    """What the columns explain of the wall time."""
    columns = sum(value for name, value in seconds.items() if name not in ("overlap", "total"))
    return columns - seconds["overlap"]


def allowed(wall):
    return max(0.02, 0.03 * wall)


def delay():
    """How much longer than alone a run takes now that does nothing."""
    begin = time.monotonic()
    run("--version")
    return max(time.monotonic() - begin - EMPTY_RUN, 0)


class Seconds(FolderTest):
    def check(self, *args, shown=(), env=None):
        """The columns explain one of a few runs; those of `shown` are not zero."""
        gaps = []
        end = END_OF_DRIVER if "--device" in args else 0
        for _ in range(MOST_RUNS):
            begin = time.monotonic()
            seconds = json.loads(run(*args, "-f", "--json", env=env).stdout)["seconds"]
            wall = time.monotonic() - begin
            for name, value in seconds.items():
                self.assertGreaterEqual(value, 0, (name, seconds))
            for name in shown:
                self.assertGreater(seconds[name], 0, (name, seconds))
            gap = max(abs(wall - explained(seconds)), abs(seconds["total"] - explained(seconds)))
            if gap <= allowed(wall) + end + delay():
                return seconds
            gaps.append((round(gap, 4), round(wall, 4), seconds))
        return self.fail((args, min(gaps, key=lambda each: each[0])))

    def save(self, name, *shape, kind=np.float64):
        np.save(name, np.random.default_rng(len(shape)).standard_normal(shape).astype(kind))
        return name

    def generate(self, name, shape):
        run("generate", "--shape", shape, name, "-f")
        return name

    def test_factor_on_the_cpu(self):
        for shape, mode in (((3000, 32, 32), "reduced"), ((1, 900, 700), "reduced"),
                            ((40000, 24), "r"), ((3, 500, 300), "raw"), ((5, 0, 3), "r")):
            name = self.save("a.npy", *shape, kind=np.float32 if shape[0] > 100 else np.float64)
            work = () if 0 in shape else ("read", "factor", "write")
            self.check("factor", name, "q.npy", "--backend", "cpu", "--mode", mode,
                       shown=("start", "sync", *work))

    def test_factor_of_other_formats(self):
        self.check("factor", self.generate("a.h5", "500x60x40"), "q.h5", "--backend", "cpu",
                   shown=("start", "read", "factor", "check", "write", "sync"))
        np.savetxt("a.csv", np.random.default_rng(1).standard_normal((20000, 8)), delimiter=",")
        self.check("factor", "a.csv", "q.csv", "--backend", "cpu")
        self.check("factor", "a.csv", "q.npz", "--backend", "cpu", "--pivot", "--leverage",
                   shown=("leverage",))

    def test_factor_by_rows(self):
        # The device's driver is not in the memory of these runs.
        name = self.generate("a.h5", "60000x40")
        for mode in ("reduced", "r"):
            self.check("factor", name, "q.h5", "--backend", "cpu", "--mode", mode,
                       "--memory", "24MiB", shown=("read", "factor", "check", "write"))

    def test_one_large_matrix(self):
        seconds = self.check("factor", self.save("a.npy", 1400, 1400), "q.npy", "--backend", "cpu",
                             shown=("free",))
        self.assertGreater(seconds["factor"] + seconds["check"], 0.5 * seconds["total"], seconds)

    def test_solve_on_the_cpu(self):
        self.save("a.npy", 4000, 24, 8)
        self.save("b.npy", 4000, 24)
        self.check("solve", "a.npy", "b.npy", "x.npy", "--backend", "cpu",
                   shown=("start", "read", "solve", "write", "sync"))
        self.check("solve", "a.npy", "b.npy", "x.h5", "--backend", "cpu", "--residuals")
        self.save("one.npy", 300, 60)
        self.save("many.npy", 300, 5000)
        self.check("solve", "one.npy", "many.npy", "x.npy", "--backend", "cpu",
                   shown=("read", "factor", "solve"))

    def test_solve_by_rows_and_of_a_table(self):
        self.check("solve", self.generate("a.h5", "80000x30"), self.generate("b.h5", "80000x1"),
                   "x.h5", "--backend", "cpu", "--memory", "24MiB", "--residuals",
                   shown=("read", "factor", "solve", "write"))
        table = np.random.default_rng(2).standard_normal((30000, 5))
        np.savetxt("t.csv", table, delimiter=",", header="a,b,c,d,y", comments="")
        self.check("solve", "t.csv", "x.csv", "--response", "y", "--backend", "cpu")

    @unittest.skipUnless(HAS_DEVICE, "no OpenCL device")
    def test_on_a_device(self):
        self.check("factor", self.save("a.npy", 200, 16, 16), "q.npy", "--device", "0",
                   shown=("start", "upload", "factor", "check", "download", "write"))
        self.save("b.npy", 200, 16)
        self.check("solve", "a.npy", "b.npy", "x.npy", "--device", "0", shown=("solve", "other"))
        self.save("one.npy", 60, 12)
        self.save("many.npy", 60, 3000)
        self.check("solve", "one.npy", "many.npy", "x.npy", "--device", "0")

    @unittest.skipUnless(HAS_DEVICE, "no OpenCL device")
    def test_in_pieces(self):
        self.check("factor", self.generate("a.h5", "1100x100"), "q.h5", "--device", "0", env=PIECES,
                   shown=("read", "upload", "factor", "check", "download", "write"))

    def test_the_text_has_the_same_columns(self):
        name = self.save("a.npy", 400, 30, 20)
        for _ in range(MOST_RUNS):
            said = run("factor", name, "q.npy", "-v", "--backend", "cpu", "-f").stdout
            line = re.search(r"^start .*$", said, re.MULTILINE).group()
            found = {column: float(number) * UNITS[unit] for column, number, unit in
                     re.findall(r"(\w+) ([0-9.e-]+) (\w+)", re.sub(r" \([^)]*\)", "", line))}
            self.assertLessEqual({"start", "read", "factor", "check", "write", "sync", "total"},
                                 set(found), line)
            if abs(explained(found) - found["total"]) <= allowed(found["total"]) + delay():
                return
        self.fail(line)


if __name__ == "__main__":
    unittest.main(argv=["seconds_test"], verbosity=1)
