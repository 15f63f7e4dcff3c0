#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The most memory that a run has resident, for many ways in which a file may be stored: at most a
tenth and 20 MiB more than --memory."""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import h5py
import numpy as np

QRTOOL, COUNT_CALLS = sys.argv[1:3]
MIB = 1 << 20
MODES = ("reduced", "r", "raw")


class Memory(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix="qrtool-memory-")
        random = np.random.default_rng(5)
        cls.batch = random.standard_normal((10000, 32, 32), np.float32)  # 39 MiB
        cls.rows = random.standard_normal((300000, 32), np.float32)  # 37 MiB
        cls.code, _, cls.base = cls.run_tool("--version")

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def setUp(self):
        if self.base > 64 * MIB:
            self.skipTest("a sanitizer keeps memory that was freed")

    @classmethod
    def path(cls, name):
        return os.path.join(cls.folder, name)

    @classmethod
    def run_tool(cls, *args):
        """The exit code, what was said, and VmHWM, which the process leaves in a file when it
        ends."""
        log = cls.path("counts")
        env = dict(os.environ, LD_PRELOAD=COUNT_CALLS, QRTOOL_COUNT_LOG=log,
                   ASAN_OPTIONS="verify_asan_link_order=0")
        done = subprocess.run([QRTOOL, *args], capture_output=True, text=True, timeout=300,
                              check=False, env=env)
        with open(log, encoding="ascii") as file:
            counts = dict(line.split() for line in file)
        return done.returncode, done.stderr, int(counts["peak_kib"]) << 10

    def store(self, data, **how):
        with h5py.File(self.path("a.h5"), "w") as file:
            file.create_dataset("A", data=data, **how)
        return self.path("a.h5")

    def expect_peak(self, file, mebibytes, mode="reduced", out="q.h5", options=()):
        code, said, peak = self.run_tool("factor", file, self.path(out), "-f", "-q", "--backend",
                                         "cpu", "--mode", mode,
                                         "--threads", "2", "--memory", f"{mebibytes}MiB", *options)
        self.assertEqual(code, 0, said)
        self.assertLess(peak / MIB, 1.1 * mebibytes + 20, (os.path.basename(file), mode))

    def expect_solve_peak(self, a, b, mebibytes, options=()):
        """Of solve, and of verify for what it wrote."""
        x = self.path("x.h5")
        shared = "-q", "--threads", "2", "--memory", f"{mebibytes}MiB"
        for command in (("solve", a, b, x, "-f", "--backend", "cpu", *options),
                        ("verify", a, b, x)):
            code, said, peak = self.run_tool(*command, *shared)
            self.assertEqual(code, 0, said)
            self.assertLess(peak / MIB, 1.1 * mebibytes + 20, (command[0], b))

    def expect_peaks(self, file, mebibytes, out="q.h5"):
        for mode in MODES:
            self.expect_peak(file, mebibytes, mode, out)

    def test_batches_in_hdf5(self):
        big_endian = self.batch.dtype.newbyteorder(">")
        for how in ({}, {"chunks": True}, {"chunks": (4096, 32, 32)}, {"dtype": big_endian},
                    {"chunks": True, "compression": "gzip", "compression_opts": 1,
                     "shuffle": True}):
            self.expect_peaks(self.store(self.batch, **how), 16)

    def test_rows_in_hdf5(self):
        for how in ({}, {"chunks": (131072, 32)},
                    {"chunks": (4000, 32), "compression": "gzip", "compression_opts": 1}):
            file = self.store(self.rows, **how)
            self.expect_peak(file, 24)
            self.expect_peak(file, 24, "r")

    def test_chunks_that_must_be_read_whole(self):
        # A checksum or gzip is of all 16 MiB of a chunk.
        for how in ({"fletcher32": True}, {"compression": "gzip", "compression_opts": 1}):
            file = self.store(self.batch, chunks=(4096, 32, 32), **how)
            self.expect_peaks(file, 160)
            code, said, _ = self.run_tool("factor", file, self.path("q.h5"), "-f", "--backend",
                                          "cpu", "--memory",
                                          "16MiB")
            self.assertEqual(code, 6, said)
            self.assertRegex(said,
                             r"a\.h5: reading and writing files take \d+ MiB of memory; the limit "
                             r"is 16 MiB")

    def test_many_small_matrices(self):
        # The chunks of the report that wait to be full are larger than the matrices in flight.
        self.expect_peak(self.store(np.ones((300000, 3, 3), np.float32)), 20)

    def test_columns(self):
        self.expect_peak(self.store(self.batch), 32, options=("--order", "column"))

    def test_numpy(self):
        np.save(self.path("a.npy"), self.batch)
        self.expect_peaks(self.path("a.npy"), 16, "q.npy")
        np.save(self.path("f.npy"), np.asfortranarray(self.rows))
        self.expect_peak(self.path("f.npy"), 24, "r")

    def test_text(self):
        with open(self.path("a.csv"), "w", encoding="ascii") as file:
            for matrix in self.batch[:1500]:
                np.savetxt(file, matrix, fmt="%.8g", delimiter=",")
                file.write("\n")
        self.expect_peaks(self.path("a.csv"), 16, "q.csv")

    def store_systems(self, a, b, **how):
        """A, and b stored in some way."""
        with h5py.File(self.path("s.h5"), "w") as file:
            file.create_dataset("A", data=a, **(how if a.ndim > 2 else {}))
            file.create_dataset("b", data=b, **(how if a.ndim == 2 else {}))
        return self.path("s.h5:/A"), self.path("s.h5:/b")

    def test_solve_of_batches(self):
        b = self.batch[:, :, 0]
        for how in ({}, {"chunks": True, "compression": "gzip", "compression_opts": 1}):
            self.expect_solve_peak(*self.store_systems(self.batch, b, **how), 16)
        self.expect_solve_peak(*self.store_systems(self.batch, b), 16, ("--missing", "skip"))
        # Chunks that are unpacked as a whole, of 16 MiB.
        files = self.store_systems(self.batch, b, chunks=(4096, 32, 32), compression="gzip",
                                   compression_opts=1)
        self.expect_solve_peak(*files, 64)
        code, said, _ = self.run_tool("solve", *files, self.path("x.h5"), "-f", "--memory", "16MiB")
        self.assertEqual(code, 6, said)
        self.assertRegex(said,
                         r"s\.h5: reading and writing files take \d+ MiB of memory; the limit is "
                         r"16 MiB")

    def test_solve_with_one_matrix(self):
        a, b = self.rows[:32, :4], self.rows
        self.expect_solve_peak(*self.store_systems(a, b), 16)
        self.expect_solve_peak(*self.store_systems(a, b, chunks=(65536, 32), compression="gzip",
                                                   compression_opts=1), 40)

    def test_solve_by_rows(self):
        b = self.rows[:, 0] + 1
        self.expect_solve_peak(*self.store_systems(self.rows[None], b[None], chunks=(1, 65536, 32),
                                                   compression="gzip",
                                                   compression_opts=1), 40)
        self.expect_solve_peak(*self.store_systems(self.rows, b), 24)

    def test_verify(self):
        file = self.store(self.batch, chunks=True, compression="gzip", compression_opts=1)
        self.expect_peak(file, 64)
        code, said, peak = self.run_tool("verify", file, self.path("q.h5"), "-q", "--threads", "2",
                                         "--memory", "32MiB")
        self.assertEqual(code, 0, said)
        self.assertLess(peak / MIB, 1.1 * 32 + 20)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
