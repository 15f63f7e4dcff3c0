#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Several --dataset in one run: one output, in which a bad dataset does not lose the others."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

import h5py
import numpy as np

QRTOOL = sys.argv[1]


class Several(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="qrtool-several-")
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.a, self.q = self.path("a.h5"), self.path("q.h5")
        rng = np.random.default_rng(4)
        self.arrays = {"A": rng.standard_normal((7, 5, 3)),
                       "group/B": rng.standard_normal((2, 3, 4, 6)).astype("f4"),
                       "C": rng.standard_normal((9, 2))}
        with h5py.File(self.a, "w") as file:
            for name, array in self.arrays.items():
                file[name] = array
            file["line"] = np.arange(3.0)
            file["bad"] = np.full((2, 3, 3), np.nan)
            broken = file.create_dataset("broken", data=np.ones((4, 300, 300)),
                                         chunks=(1, 300, 300), fletcher32=True)
            place = broken.id.get_chunk_info(2)
        with open(self.a, "r+b") as file:
            file.seek(place.byte_offset + 99)
            file.write(b"x")

    def path(self, name):
        return os.path.join(self.folder, name)

    def run_tool(self, *args, status=0):
        done = subprocess.run([QRTOOL, *args], capture_output=True, text=True, timeout=120,
                              check=False)
        self.assertEqual(done.returncode, status, (args, done.stdout, done.stderr))
        return done

    def factor(self, *datasets, status=0, more=()):
        named = [word for dataset in datasets for word in ("--dataset", dataset)]
        return self.run_tool("factor", self.a, self.q, "-f", *named, *more, status=status)

    def expect_factors(self, name, part=None):
        with h5py.File(self.q) as file:
            q, r = file["Q/" + name][:], file["R/" + name][:]
            a = self.arrays[name] if part is None else part
            self.assertEqual(q.dtype, a.dtype)
            np.testing.assert_allclose(q @ r, a, atol=1e-5 if a.dtype == np.float32 else 1e-13)
            report = file["report/" + name]
            self.assertEqual(report["status"].shape, a.shape[:-2] or (1,))
            self.assertTrue((report["status"][:] == 0).all())
            self.assertEqual(report.attrs["source_dataset"], "/" + name)
            self.assertEqual(report.attrs["format"], "qrtool")

    def test_one_output_holds_all(self):
        said = self.factor(*self.arrays).stdout
        self.assertIn("wrote " + self.q +
                      " (/Q/group/B 2x3x4x4, /R/group/B 2x3x4x6, /report/group/B)", said)
        for name in self.arrays:
            self.expect_factors(name)
        with h5py.File(self.q) as file:
            self.assertEqual(list(file.attrs["source_datasets"]),
                             ["/" + name for name in self.arrays])
        said = self.run_tool("verify", self.a, self.q)
        self.assertEqual(said.stdout.count(" pass\n"), 2)
        # What was doubtful is so again; nothing else is noted.
        for note in said.stderr.splitlines():
            self.assertRegex(note, "is read as|is square")
        self.assertIn("the matrix passes", said.stdout)
        first = self.read()
        self.factor(*self.arrays)
        self.assertTrue(self.read() == first, "equal runs give equal bytes")

    def read(self):
        with open(self.q, "rb") as file:
            return file.read()

    def test_verify_takes_the_ones_that_are_named(self):
        self.factor("A", "C")
        with h5py.File(self.q, "r+") as file:
            file["Q/A"][3, 0, 0] += 1e-6
        self.assertIn("matrix 3 fails", self.run_tool("verify", self.a, self.q, status=1).stdout)
        self.run_tool("verify", self.a, self.q, "--dataset", "/C")
        self.run_tool("verify", self.a + ":/C", self.q)
        self.run_tool("verify", self.a, self.q, "--dataset", "A", status=1)
        said = self.run_tool("verify", self.a, self.q, "--dataset", "/D", status=3).stderr
        self.assertIn("holds no factors of /D\nhint: it holds those of /A, /C", said)
        answers = json.loads(self.run_tool("verify", self.a, self.q, "--json", status=1).stdout)
        self.assertEqual((answers["schema"], answers["exit"]), ("qrtool.verify-several/1", 1))
        self.assertEqual([each["exit"] for each in answers["datasets"]], [1, 0])

    def test_a_bad_dataset_does_not_lose_the_others(self):
        done = self.factor("A", "missing", "line", "broken", "bad", "C", status=3, more=["--json"])
        for said in ("there is no dataset /missing", "line has rank 1",
                     "checksum mismatch at matrix 2",
                     "2 of 2 matrices contain NaN or Inf"):
            self.assertIn(said, done.stderr)
        results = json.loads(done.stdout)
        self.assertEqual((results["schema"], results["exit"]), ("qrtool.factor-several/1", 3))
        self.assertEqual([each["exit"] for each in results["datasets"]], [0, 3, 3, 3, 1, 0])
        self.assertEqual(results["datasets"][3]["dataset"], "broken")
        self.expect_factors("A")
        self.expect_factors("C")
        with h5py.File(self.q) as file:
            self.assertEqual(list(file.attrs["source_datasets"]), ["/A", "/bad", "/C"])
            for group in ("Q", "R", "report"):
                self.assertEqual(sorted(file[group]), ["A", "C", "bad"])
        self.run_tool("verify", self.a, self.q, status=1)

    def test_a_pattern_stands_for_all_matrices_of_such_names(self):
        with h5py.File(self.a, "a") as file:
            file["sub-1/A"] = file["sub-2/A"] = np.eye(3)
            file["times"] = np.arange(4.)
        self.factor("/sub-*/A")
        with h5py.File(self.q) as file:
            self.assertEqual(list(file.attrs["source_datasets"]), ["/sub-1/A", "/sub-2/A"])
        self.run_tool("verify", self.a, self.q)
        self.factor("sub-?/A", "/sub-1/A")
        self.factor("sub-1/*")
        with h5py.File(self.q) as file:
            np.testing.assert_allclose(file["Q/sub-1/A"][:] @ file["R/sub-1/A"][:], np.eye(3))
        self.factor("*", status=3)  # /broken is
        with h5py.File(self.q) as file:
            names = set(file.attrs["source_datasets"])
        self.assertEqual(names, {"/sub-1/A", "/sub-2/A", "/bad",
                                 *("/" + name for name in self.arrays)})
        said = self.run_tool("factor", self.a, self.q, "-f", "--dataset", "x*", status=3).stderr
        self.assertIn("no matrix has a name like 'x*'", said)
        archive = self.a + ".npz"
        np.savez(archive, w1=np.eye(4), w2=np.ones((5, 2)), bias=np.ones(3))
        self.run_tool("factor", archive, self.q, "-f", "--dataset", "*")
        with h5py.File(self.q) as file:
            self.assertEqual(sorted(file["R"]), ["w1", "w2"])
        np.savetxt(self.a + ".csv", np.eye(3), delimiter=",")
        said = self.run_tool("factor", self.a + ".csv", self.q, "-f", "--dataset", "*",
                             status=3).stderr
        self.assertIn("the file holds no datasets", said)

    def test_nothing_is_written_where_all_fail(self):
        self.factor("missing", "broken", status=3)
        self.assertEqual(os.listdir(self.folder), ["a.h5"])

    def test_parts_of_one_dataset(self):
        self.factor("/A[:3]", "/A[3:]")
        self.expect_factors("A[:3]", self.arrays["A"][:3])
        self.expect_factors("A[3:]", self.arrays["A"][3:])
        self.run_tool("verify", self.a, self.q)

    def test_mistakes(self):
        for status, args, said in (
            (2, ("factor", self.a, self.path("q.csv"), "--dataset", "A", "--dataset", "C"),
             "only an HDF5 file holds"),
            (2, ("factor", self.a, self.q, "--dataset", "A", "--dataset", "/A"),
             "--dataset /A is given twice"),
            (2, ("factor", "-", self.q, "--dataset", "[0:1]", "--dataset", "[1:]"),
             "standard input is read once"),
            (2, ("factor", self.a, self.q, "--dataset", "A", "--dataset", "C", "--report",
                 self.path("r.csv")),
             "--report is for one --dataset"),
            (2, ("factor", self.a, self.q, "--dataset"), "option '--dataset' needs a value"),
        ):
            self.assertIn(said, self.run_tool(*args, status=status).stderr)
            self.assertEqual(os.listdir(self.folder), ["a.h5"])
        self.run_tool("factor", self.a, self.q, "--dataset", "A")
        said = self.run_tool("verify", self.a, self.q, "--dataset", "A", "--dataset", "C",
                             status=2).stderr
        self.assertIn("holds the factors of one dataset", said)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]], verbosity=1)
