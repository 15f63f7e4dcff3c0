#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The most memory that a run has resident, for many ways in which a file may be stored: at most a
tenth and 20 MiB more than --memory. With --all every way goes through all modes. With
`--random N [SEED]` as many ways are drawn instead."""
import gzip
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import h5py
import numpy as np

QRTOOL, COUNT_CALLS = sys.argv[1:3]
ALL = sys.argv[3:] == ["--all"]
DRAWN = int(sys.argv[4]) if sys.argv[3:4] == ["--random"] else 0
SEED = sys.argv[5] if len(sys.argv) > 5 else "1"
MIB = 1 << 20
CODE = 24  # MiB of the program and its libraries, of which 22 were seen, as qrtool(1) says
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
        self.assertLess(peak / MIB, 1.1 * mebibytes + CODE, (os.path.basename(file), mode))

    def expect_solve_peak(self, a, b, mebibytes, options=()):
        """Of solve, and of verify for what it wrote."""
        x = self.path("x.h5")
        shared = "-q", "--threads", "2", "--memory", f"{mebibytes}MiB"
        for command in (("solve", a, b, x, "-f", "--backend", "cpu", *options),
                        ("verify", a, b, x)):
            code, said, peak = self.run_tool(*command, *shared)
            self.assertEqual(code, 0, said)
            self.assertLess(peak / MIB, 1.1 * mebibytes + CODE, (command[0], b))

    def expect_peaks(self, file, mebibytes, out="q.h5", modes=MODES):
        for mode in MODES if ALL else modes:
            self.expect_peak(file, mebibytes, mode, out)

    def test_batches_in_hdf5(self):
        big_endian = self.batch.dtype.newbyteorder(">")
        for how in ({}, {"chunks": True}, {"chunks": (4096, 32, 32)}, {"dtype": big_endian},
                    {"chunks": True, "compression": "gzip", "compression_opts": 1,
                     "shuffle": True}):
            self.expect_peaks(self.store(self.batch, **how), 16,
                              modes=MODES[1:] if "compression" in how else MODES[:1])

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
            self.expect_peaks(file, 160, modes=MODES[:1] if "compression" in how else MODES[1:])
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

    def test_numpy_in_fortran_order(self):
        # The numbers are copied to a file first, of whose pages none belong to the process.
        small = np.random.default_rng(6).standard_normal((1000000, 2, 2), np.float32)
        for array in (small, small.reshape(2, 500000, 2, 2), small.reshape(1000, 10, 100, 2, 2),
                      self.batch[:2000].reshape(100, 20, 32, 32)):
            np.save(self.path("f.npy"), np.asfortranarray(array))
            self.expect_peak(self.path("f.npy"), 24, "r")
        np.save(self.path("f.npy"), np.asfortranarray(self.batch[:3].repeat(50, 1).repeat(20, 2)))
        self.expect_peak(self.path("f.npy"), 44, "r")
        np.savez_compressed(self.path("f.npz"), a=np.asfortranarray(small))
        self.expect_peak(self.path("f.npz") + ":a", 24, "r")

    def test_many_small_chunks(self):
        ones = {"chunks": (1, 1), "compression": "gzip", "fillvalue": 1.0}
        with h5py.File(self.path("c.h5"), "w") as file:
            file.create_dataset("never", (2000, 2000), "f8", **ones)
            file.create_dataset("some", (400, 400), "f8", **ones)[:200, :300] = 2
            file.create_dataset("rows", data=self.rows[:60000, :8], chunks=(1, 8),
                                compression="gzip")
        for name, mebibytes in (("never", 200), ("some", 24), ("rows", 12)):
            self.expect_peak(self.path(f"c.h5:/{name}"), mebibytes, "r")

    def test_many_chunks_in_one_call_of_hdf5(self):
        rows = self.rows.ravel()[: 997728 * 7].reshape(-1, 7).astype(">f4")
        for chunk in ((146, 7), (20, 7), (20000, 1)):
            self.expect_peak(self.store(rows, chunks=chunk), 32, "r", "q.npy")
        file = self.store(self.rows[:20000, :8].T.copy(), chunks=(8, 1))
        self.expect_peak(file, 24, "r", options=("--order", "column"))
        numbers = (100 * self.rows.ravel()[:6000000].reshape(-1, 3, 5)).astype("<i2")
        file = self.store(numbers, chunks=(68, 3, 5), fletcher32=True)
        self.expect_peak(file, 20, "raw", "q.npy")

    def test_large_chunks_by_rows(self):
        rows = np.random.default_rng(7).standard_normal((400000, 16))
        file = self.store(rows, chunks=(40960, 16), compression="gzip", compression_opts=1)
        self.expect_peak(file, 40)
        code, said, peak = self.run_tool("verify", file, self.path("q.h5"), "-q", "--threads", "2",
                                         "--memory", "40MiB")
        self.assertEqual(code, 0, said)
        self.assertLess(peak / MIB, 1.1 * 40 + CODE)
        self.expect_peak(file, 40, "r")
        self.expect_peak(file, 44, "r")
        self.expect_peak(file, 56, out="q.npy")

    def test_matrix_market_output(self):
        tall = np.random.default_rng(8).standard_normal((1000000, 2))
        np.save(self.path("t.npy"), tall)
        self.expect_peak(self.path("t.npy"), 24, out="q.mtx")
        np.save(self.path("t.npy"), np.ascontiguousarray(tall.reshape(-1, 1000).T))
        self.expect_peak(self.path("t.npy"), 160, "r", out="q.mtx")

    def test_text(self):
        with open(self.path("a.csv"), "w", encoding="ascii") as file:
            for matrix in self.batch[:1500]:
                np.savetxt(file, matrix, fmt="%.8g", delimiter=",")
                file.write("\n")
        self.expect_peaks(self.path("a.csv"), 16, "q.csv")

    def test_text_that_needs_more(self):
        """Columns of text take memory before the first matrix does, and so do variables."""
        with gzip.open(self.path("c.csv.gz"), "wt") as file:
            file.write("1," * (1 << 21) + "1\n")
        with gzip.open(self.path("c.mtx.gz"), "wt") as file:
            file.write("%%MatrixMarket matrix array complex general\n1 1\n")
            file.write("1 " * (1 << 24) + "\n")
        with gzip.open(self.path("v.txt.gz"), "wt") as file:
            file.write("".join(f"# name: v{i}\n# type: scalar\n{i}\n" for i in range(200_000)))
        for name in ("c.csv.gz", "c.mtx.gz", "v.txt.gz"):
            code, said, peak = self.run_tool("factor", self.path(name), self.path("q.h5"), "-f",
                                             "--memory", "32MiB")
            self.assertEqual(code, 6, said)
            self.assertLess(peak / MIB, 1.1 * 32 + CODE, (name, said))
        _, said, _ = self.run_tool("factor", self.path("c.csv.gz"), self.path("q.h5"), "-f",
                                   "--memory", "32MiB")
        followed = re.search("raise --memory to (.*)", said)
        self.assertIsNotNone(followed, said)
        code, said, _ = self.run_tool("factor", self.path("c.csv.gz"), self.path("q.h5"), "-f",
                                      "--memory", followed.group(1))
        self.assertEqual(code, 0, said)

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
        self.expect_solve_peak(*self.store_systems(a, b), 20)
        self.expect_solve_peak(*self.store_systems(a, b, chunks=(65536, 32), compression="gzip",
                                                   compression_opts=1), 44)

    def test_solve_by_rows(self):
        b = self.rows[:, 0] + 1
        self.expect_solve_peak(*self.store_systems(self.rows[None], b[None], chunks=(1, 65536, 32),
                                                   compression="gzip",
                                                   compression_opts=1), 48)
        self.expect_solve_peak(*self.store_systems(self.rows, b), 24)

    def test_complex_numbers(self):
        generator = np.random.default_rng(12)
        rows = generator.standard_normal((300000, 16)).view(complex)
        code, said, _ = self.run_tool("factor", self.store(rows), self.path("q.h5"), "-fq",
                                      "--backend", "cpu")
        self.assertEqual(code, 0, said)
        for mebibytes in (8, 40):
            code, said, peak = self.run_tool("verify", self.path("a.h5"), self.path("q.h5"),
                                             "--threads", "2", "--memory", f"{mebibytes}MiB")
            self.assertEqual(code, 0, said)
            self.assertLess(peak / MIB, 1.1 * mebibytes + CODE, mebibytes)
            self.expect_peak(self.path("q.h5") + ":/Q", mebibytes, "r", "r.h5")

    def test_solve_of_numpys_files_by_rows(self):
        rows = np.random.default_rng(9).standard_normal((400000, 16))
        np.save(self.path("a.npy"), rows)
        np.save(self.path("b.npy"), rows[:, 0] + 1)
        for mebibytes in (12, 16, 40):
            self.expect_solve_peak(self.path("a.npy"), self.path("b.npy"), mebibytes)

    def test_right_sides_as_rows(self):
        generator = np.random.default_rng(10)
        a = generator.standard_normal((2000000, 2), np.float32)
        b = generator.standard_normal((3, 2000000), np.float32)
        files = self.store_systems(a[None], b)
        self.expect_solve_peak(files[0] + "[0]", files[1], 24)
        np.save(self.path("a.npy"), a)
        np.save(self.path("b.npy"), b)
        self.expect_solve_peak(self.path("a.npy"), self.path("b.npy"), 24)

    def test_verify(self):
        file = self.store(self.batch, chunks=True, compression="gzip", compression_opts=1)
        self.expect_peak(file, 64)
        code, said, peak = self.run_tool("verify", file, self.path("q.h5"), "-q", "--threads", "2",
                                         "--memory", "32MiB")
        self.assertEqual(code, 0, said)
        self.assertLess(peak / MIB, 1.1 * 32 + CODE)


class Drawn(Memory):
    """Ways to store and to factor some 16 to 60 MiB, each drawn from SEED and its number."""

    def draw_array(self, draw):
        numbers = draw.randrange(2 << 20, 8 << 20)
        kind = draw.choice(("batch", "batch", "tall", "wide"))
        if kind == "batch":
            m, n = draw.choice(((1, 1), (2, 2), (3, 5), (16, 4), (32, 32), (100, 7), (256, 200)))
            shape = [max(1, numbers // (m * n)), m, n]
            if draw.random() < 0.3:
                shape = [max(1, shape[0] // 30), draw.choice((2, 5)), 6, m, n]
        else:
            n = draw.choice((1, 2, 7, 16, 40))
            shape = [numbers // n, n] if kind == "tall" else [n, numbers // n // 8]
        dtype = draw.choice(("<f4", "<f8", ">f4", "<i2"))
        generator = np.random.default_rng(draw.randrange(1 << 32))
        array = generator.standard_normal(shape, np.float32) * 100
        return array.astype(dtype)

    def store_drawn(self, draw, array):
        """Returns the file and a description."""
        how = draw.choice(("npy", "fortran", "npz", "hdf5", "hdf5", "hdf5"))
        if how != "hdf5":
            stored = np.asfortranarray(array) if how == "fortran" else array
            if how == "npz":
                np.savez_compressed(self.path("d.npz"), a=stored[: len(stored) // 3 + 1])
                return self.path("d.npz") + ":a", how
            np.save(self.path("d.npy"), stored)
            return self.path("d.npy"), how
        options = {}
        if draw.random() < 0.8:
            most = max(1, min(array.size, draw.choice((1 << 10, 1 << 14, 1 << 18, 1 << 20))))
            chunk = list(array.shape)
            for d in range(len(chunk)):
                whole = int(np.prod(chunk))
                chunk[d] = max(1, min(chunk[d], chunk[d] * most // whole))
            options = {"chunks": tuple(chunk), **draw.choice((
                {}, {"fletcher32": True}, {"compression": "lzf"},
                {"compression": "gzip", "compression_opts": 1, "shuffle": True}))}
        with h5py.File(self.path("d.h5"), "w") as file:
            file.create_dataset("A", data=array, **options)
        return self.path("d.h5"), f"hdf5 {options}"

    def test_drawn(self):
        refused = 0
        for number in range(DRAWN):
            draw = random.Random(f"{SEED} {number}")
            array = self.draw_array(draw)
            file, how = self.store_drawn(draw, array)
            mode = draw.choice(MODES)
            out = draw.choice(("q.h5", "q.npy", "q.npz") + (("q.mtx",) if array.ndim == 2 else ()))
            mebibytes = draw.choice((16, 20, 24, 32, 48, 100))
            with self.subTest(number=number, shape=array.shape, type=array.dtype.str, how=how,
                              mode=mode, out=out, memory=mebibytes):
                code, said, peak = self.run_tool(
                    "factor", file, self.path(out), "-f", "-q", "--backend", "cpu", "--mode", mode,
                    "--threads", draw.choice("1234"), "--memory", f"{mebibytes}MiB")
                # What needs more memory as a whole is refused.
                refused += code == 6
                self.assertIn(code, (0, 6), said)
                if code == 6:
                    self.assertRegex(said, "the limit is|--memory")
                self.assertLess(peak / MIB, 1.1 * mebibytes + CODE)
        print(f"{DRAWN} drawn, {refused} refused")


if __name__ == "__main__":
    chosen = "Drawn.test_drawn" if DRAWN else "Memory"
    unittest.main(argv=[sys.argv[0], chosen])
